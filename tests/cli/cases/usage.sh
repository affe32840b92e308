# Without arguments: a short usage on stderr, exit 2. Asked for: the overview on stdout, exit 0.
couplet 2>/dev/null; echo "exit $?"
couplet; echo "exit $?"
couplet help; echo "exit $?"
couplet --help >one; couplet help >two; cmp one two && echo "--help and help agree"
couplet -h 2>&1 >/dev/null; echo "exit $?"
couplet --version >version; echo "exit $?"
head -c 8 version; echo
