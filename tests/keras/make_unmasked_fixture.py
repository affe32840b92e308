"""Models that Keras runs without masking, for tests/golden: python make_unmasked_fixture.py [FOLDER]
The reference classes with mask_zero left out and no mask in the attention: all N positions of a source are read, by
both directions of the encoder and by the attention. Writes unmasked.weights.h5 (translator) and
unmasked_autoencoder.weights.h5, and beside each a .safetensors of what Keras makes of sources of different lengths."""
import json
import os
import struct
import sys

sys.dont_write_bytecode = True
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import classes
from keras import layers, ops

SOURCE, TARGET, UNITS, PAD_TO, START, END, STEPS = 23, 29, 8, 9, 2, 3, 10


def unmask(model):
    """Embeddings stop handing on a mask: the one place where Keras's layers get theirs from."""
    for layer in model._flatten_layers():
        if isinstance(layer, layers.Embedding):
            layer.mask_zero = layer.supports_masking = False
    return model


class Translator(classes.Translator):
    def call(self, inputs):
        source, target = inputs
        return self.decoder(self.encoder(source), target, ops.ones_like(source, dtype="bool"))


def masked_loss(labels, logits):
    losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    mask = ops.cast(labels != 0, "float32")
    return ops.sum(losses * mask) / ops.sum(mask)


def rows(random, lengths, size, width):
    """[START] words [END], filled up with 0."""
    ids = np.zeros((len(lengths), width), "int64")
    for row, n in zip(ids, lengths):
        row[:n + 2] = [START, *random.integers(4, size, n), END]
    return ids


def greedy(model, source):
    """END and all after it are 0; None where padding is chosen before."""
    ids, done = np.full((len(source), 1), START), np.zeros(len(source), "bool")
    for _ in range(STEPS):
        chosen = np.asarray(model((source, ids)))[:, -1].argmax(-1)
        done |= chosen == END
        if (~done & (chosen == 0)).any():
            return None
        ids = np.concatenate([ids, np.where(done, 0, chosen)[:, None]], 1)
    return ids[:, 1:]


def train(model, data, labels):
    """The loss before each of three steps of Adam on the same batch; an embedding row's gradients are summed first."""
    import tensorflow as tf
    optimizer, losses = keras.optimizers.Adam(1e-3), []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = masked_loss(labels, model(data))
        losses.append(float(loss))
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, model.trainable_variables)]
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return np.array(losses, "float32")


def write(folder, name, model, tensors):
    model.save_weights(os.path.join(folder, name + ".weights.h5"))
    header, data = {}, b""
    for key, value in sorted(tensors.items(), key=lambda item: item[1].dtype.name, reverse=True): # whole numbers first
        value = np.ascontiguousarray(value)
        kind = {"float32": "F32", "int64": "I64"}[value.dtype.name]
        header[key] = {"dtype": kind, "shape": value.shape, "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, name + ".safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def randomise(model, data, random):
    unmask(model)(data)
    model.set_weights([random.normal(0, 0.9, w.shape).astype("float32") for w in model.get_weights()])


def lively(ids):
    """Outputs that tell sources apart: rows differ, one ends by itself, and words alone are in them."""
    if ids is None:
        return False
    words = ids[ids != 0]
    return len({tuple(row) for row in ids}) == len(ids) and (ids[:, -1] == 0).any() and words.min() >= 4 and \
        len(set(words)) > 3


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "golden")
    random = np.random.default_rng(7)
    source, target = rows(random, (7, 3, 1), SOURCE, PAD_TO), rows(random, (2, 4, 1), TARGET, 6)
    model, data = Translator(SOURCE, TARGET, UNITS), (source, target[:, :-1])
    randomise(model, data, random)
    while not lively(greedy(model, source)):
        randomise(model, data, random)
        model.decoder.output_layer.bias.assign_add([-9.0] * END + [1.0] + [0.0] * (TARGET - END - 1)) # words, and END
    tensors = {"in.source": source, "in.target_in": target[:, :-1], "in.y": target[:, 1:],
               "out.encoder": np.asarray(model.encoder(source)), "out.logits": np.asarray(model(data)),
               "out.greedy": greedy(model, source).astype("int64")}
    save = model.get_weights()
    tensors["train.loss"] = train(model, data, target[:, 1:])
    model.set_weights(save)
    write(folder, "unmasked", model, tensors)

    model = classes.Autoencoder(SOURCE, UNITS)
    randomise(model, source, random)
    tensors = {"in.source": source, "out.logits": np.asarray(model(source))}
    save = model.get_weights()
    tensors["train.loss"] = train(model, source, source)
    model.set_weights(save)
    write(folder, "unmasked_autoencoder", model, tensors)


main()
