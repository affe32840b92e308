# The models that a run keeps, and their average.
awk 'BEGIN { for (i = 0; i < 12; i++) print "a" i % 4 " b" i % 3 "\tx" i % 4 " y" i % 3 }' >pairs.tsv
cat >m.yaml <<END
model: {units: 4}
data: {train: pairs.tsv, valid: pairs.tsv}
training: {batch_size: 6, epochs: 3, keep: 2, threads: 1, show_examples: 0}
END
couplet train m.yaml --progress none >log 2>&1 || cat log
ls m
couplet average m/model-*.safetensors -o mean.safetensors
echo "exit $?"
couplet inspect mean.safetensors | grep averaged | sed 's/ loss .*//'
echo "a1 b1" | couplet generate mean.safetensors --max-length 3 | wc -l
couplet average m/model-6.safetensors
echo "exit $?"
couplet average m/model-6.safetensors -o one.safetensors
echo "exit $?"
couplet train m.yaml -o wide --set model.units=6 --progress none >log 2>&1 || cat log
couplet average m wide -o no.safetensors
echo "exit $?"
ls *.safetensors
