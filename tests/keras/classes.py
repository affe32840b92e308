"""The reference classes as a Keras user writes them: the tutorial's translator, an autoencoder, the summarizer."""
import keras
from keras import layers, ops


class Encoder(layers.Layer):
    def __init__(self, vocabulary, units):
        super().__init__()
        self.embedding = layers.Embedding(vocabulary, units, mask_zero=True)
        self.rnn = layers.Bidirectional(
            layers.GRU(units, return_sequences=True, recurrent_initializer="glorot_uniform"), merge_mode="sum")

    def call(self, ids):
        return self.rnn(self.embedding(ids))


class CrossAttention(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.mha = layers.MultiHeadAttention(num_heads=1, key_dim=units)
        self.layernorm = layers.LayerNormalization()
        self.add = layers.Add()

    def call(self, x, context, mask):
        return self.layernorm(self.add([x, self.mha(query=x, value=context, attention_mask=mask[:, None, :])]))


class Decoder(layers.Layer):
    def __init__(self, vocabulary, units):
        super().__init__()
        self.embedding = layers.Embedding(vocabulary, units, mask_zero=True)
        self.rnn = layers.GRU(units, return_sequences=True, recurrent_initializer="glorot_uniform")
        self.attention = CrossAttention(units)
        self.output_layer = layers.Dense(vocabulary)

    def call(self, context, ids, mask):
        return self.output_layer(self.attention(self.rnn(self.embedding(ids)), context, mask))


class Translator(keras.Model):
    def __init__(self, source, target, units):
        super().__init__()
        self.encoder = Encoder(source, units)
        self.decoder = Decoder(target, units)

    def call(self, inputs):
        source, target = inputs
        return self.decoder(self.encoder(source), target, source != 0)


class Autoencoder(keras.Model):
    def __init__(self, vocabulary, units):
        super().__init__()
        self.encoder = Encoder(vocabulary, units)
        self.output_layer = layers.Dense(vocabulary)

    def call(self, ids):
        return self.output_layer(self.encoder(ids))


class Additive(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.wq, self.wk, self.v = layers.Dense(units), layers.Dense(units), layers.Dense(1)

    def call(self, query, memory, mask):
        score = self.v(ops.tanh(self.wq(query)[:, None, :] + self.wk(memory)))[..., 0]
        weights = ops.softmax(ops.where(mask, score, -1e9))
        return ops.sum(weights[..., None] * memory, axis=1)


class LstmEncoder(layers.Layer):
    def __init__(self, vocabulary, units):
        super().__init__()
        self.embedding = layers.Embedding(vocabulary, units)
        self.rnn = layers.LSTM(units, return_sequences=True, return_state=True)

    def call(self, ids):
        return self.rnn(self.embedding(ids), mask=ids != 0)


class LstmDecoder(layers.Layer):
    def __init__(self, vocabulary, units):
        super().__init__()
        self.embedding = layers.Embedding(vocabulary, units)
        self.attention = Additive(units)
        self.cell = layers.LSTMCell(units)
        self.output_layer = layers.Dense(vocabulary)

    def call(self, ids, memory, mask, h, c):
        x, logits = self.embedding(ids), []
        for step in range(ids.shape[1]):
            found = self.attention(h, memory, mask)
            h, (_, c) = self.cell(ops.concatenate([found, x[:, step]], axis=-1), [h, c])
            logits.append(self.output_layer(h))
        return ops.stack(logits, axis=1)


class Summarizer(keras.Model):
    def __init__(self, source, target, units):
        super().__init__()
        self.encoder = LstmEncoder(source, units)
        self.decoder = LstmDecoder(target, units)

    def call(self, inputs):
        source, target = inputs
        memory, h, c = self.encoder(source)
        return self.decoder(target, memory, source != 0, h, c)
