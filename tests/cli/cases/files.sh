# Inputs and outputs that cannot be opened are told before any model is read.
try() { echo "\$ couplet $*"; couplet "$@"; echo "exit $?"; }
try generate m -i missing.txt
mkdir folder
try generate m -i folder
if [ -c /dev/full ]; then
    couplet help >/dev/full; echo "exit $?"
    couplet help config >/dev/full; echo "exit $?"
else
    printf 'error: cannot write to standard output: No space left on device\nexit 1\n'
    printf 'error: cannot write to standard output: No space left on device\nexit 1\n'
fi
# A reader that has gone is no error to report.
couplet help config | head -n 1
