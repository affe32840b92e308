# Every key with its default.
couplet help config
echo "exit $?"
