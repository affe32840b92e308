# Weights in a lower type: a model for generating, and what it cannot do.
awk 'BEGIN { for (i = 0; i < 12; i++) print "a" i % 4 " b" i % 3 "\tx" i % 4 " y" i % 3 }' >pairs.tsv
cat >m.yaml <<END
model: {units: 64}
data: {train: pairs.tsv, valid: pairs.tsv}
training: {batch_size: 6, epochs: 60, optimizer: {learning_rate: 0.01}, threads: 1, show_examples: 0}
END
couplet train m.yaml --progress none >log 2>&1 || cat log
couplet quantize m -o m8.safetensors
echo "exit $?"
couplet quantize m --type bfloat16 -o m16.safetensors
echo "exit $?"
for model in m/model.safetensors m8.safetensors m16.safetensors; do
    couplet inspect $model | grep -E '^weights|F32 decoder.output|I8 decoder.output|BF16 decoder.output' | sed 's/  [0-9a-f]*  /  /'
    echo "a1 b1" | couplet generate $model --max-length 3
done
couplet inspect m8.safetensors --json | tr ',' '\n' | grep -E '"weights"|"bytes"'
couplet evaluate m8.safetensors pairs.tsv --metric exact
couplet extract m8.safetensors encoder -o e8.safetensors && couplet quantize m/model.safetensors -o m8.again.safetensors
cmp m8.safetensors m8.again.safetensors && echo "the same again"
echo "a1 b1" | couplet encode m8.safetensors >whole
echo "a1 b1" | couplet encode e8.safetensors | cmp - whole && echo "the same encoder"
echo "--- refused"
couplet quantize m
echo "exit $?"
couplet quantize m --type int4 -o no.safetensors
echo "exit $?"
couplet quantize m8.safetensors -o no.safetensors
echo "exit $?"
couplet average m8.safetensors m -o no.safetensors
echo "exit $?"
couplet export keras m8.safetensors -o no.weights.h5
echo "exit $?"
couplet train m.yaml -o n --init m8.safetensors --progress none
echo "exit $?"
ls
