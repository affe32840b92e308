# Each command's page, the same from both ways of asking.
for command in train plan generate evaluate score inspect average quantize import export; do
    couplet help $command || echo "exit $?"
    echo "----"
    couplet help $command >one
    couplet $command --help >two
    couplet $command anything -h >three
    cmp one two && cmp one three
done
