#!/usr/bin/env python3
"""ONNX Runtime decoding the translator greedily: sources encoded, then exactly --tokens tokens for each.

The graph is made here, with random weights: embedding, GRU in both directions (sum), keys and values once a source, then
for each token embedding, GRU, one-head attention with residual and LayerNorm, projection, argmax.
--loop steps: one run of the session for each token; unrolled: all tokens in one graph, which Python never interrupts.
--int8: the weights of all MatMul and Gather nodes dynamically quantized (ONNX Runtime has no such GRU: the cell of the
decoder is MatMuls, so that it is quantized too; the encoder's GRU stays float32).
"""
import argparse
import json
import resource
import sys
import tempfile
import time

p = argparse.ArgumentParser()
p.add_argument("--peers", required=True, help="folder with lengths.py and lengths_translator.txt")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--batch", type=int, default=64)
p.add_argument("--units", type=int, default=256)
p.add_argument("--vocab", type=int, default=5000)
p.add_argument("--tokens", type=int, default=16)
p.add_argument("--steps", type=int, default=40)
p.add_argument("--warm", type=int, default=5)
p.add_argument("--max-seconds", type=float, default=120)
p.add_argument("--loop", choices=["steps", "unrolled"], default="unrolled")
p.add_argument("--int8", action="store_true")
a = p.parse_args()
sys.path.insert(0, a.peers)
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import TensorProto as T, helper as h, numpy_helper  # noqa: E402
import lengths  # noqa: E402

U, V, INT, FLOAT = a.units, a.vocab, T.INT64, T.FLOAT
random = np.random.default_rng(7)


class Graph:
    """nodes and weights; a call appends a node and gives the name of its output"""

    def __init__(self):
        self.nodes, self.weights, self.count = [], {}, 0

    def weight(self, name, *shape, value=None):
        if name not in self.weights:
            value = random.uniform(-0.05, 0.05, shape) if value is None else value
            value = np.asarray(value)
            self.weights[name] = value.astype("f") if value.dtype.kind == "f" else value
        return name

    def ints(self, *values):
        return self.weight("i" + "_".join(map(str, values)), value=np.array(values, np.int64))

    def __call__(self, op, *inputs, outputs=1, to=None, **attributes):
        self.count += 1
        names = [to] if to else [f"{op}{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(h.make_node(op, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def dense(self, x, name, rows, columns):
        return self("Add", self("MatMul", x, self.weight(name + ".w", rows, columns)), self.weight(name + ".b", columns))

    def model(self, inputs, outputs):
        info = [[h.make_tensor_value_info(*x) for x in side] for side in (inputs, outputs)]
        graph = h.make_graph(self.nodes, "g", info[0], info[1],
                             [numpy_helper.from_array(v, k) for k, v in self.weights.items()])
        m = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(m)
        return m


def encode(g):
    """source [batch s], lengths [batch] -> keys [batch units s], values [batch s units], bias [batch 1 s]"""
    x = g("Transpose", g("Gather", g.weight("source.embedding", V, U), "source"), perm=[1, 0, 2])
    y = g("GRU", x, g.weight("gru.w", 2, 3 * U, U), g.weight("gru.r", 2, 3 * U, U), g.weight("gru.b", 2, 6 * U),
          "lengths", outputs=2, hidden_size=U, direction="bidirectional", linear_before_reset=1)[0]  # [s 2 batch u]
    c = g("Transpose", g("ReduceSum", y, g.ints(1), keepdims=0), perm=[1, 0, 2])
    keys = g("Transpose", g.dense(c, "key", U, U), perm=[0, 2, 1], to="keys")
    values = g("Identity", g.dense(c, "value", U, U), to="values")
    there = g("Not", g("Equal", "source", g.weight("zero", value=np.array(0, np.int64))))
    bias = g("Where", there, g.weight("none", value=np.array(0.0)), g.weight("far", value=np.array(-1e9)))
    bias = g("Unsqueeze", bias, g.ints(1), to="bias")
    return keys, values, bias


def step(g, token, state, keys, values, bias):
    """token [batch 1], state [batch units] -> the next of each"""
    e = g("Squeeze", g("Gather", g.weight("target.embedding", V, U), token), g.ints(1))
    x, r = g.dense(e, "cell.x", U, 3 * U), g.dense(state, "cell.h", U, 3 * U)
    xz, xr, xh = g("Split", x, g.ints(U, U, U), outputs=3, axis=1)
    hz, hr, hh = g("Split", r, g.ints(U, U, U), outputs=3, axis=1)
    z, q = g("Sigmoid", g("Add", xz, hz)), g("Sigmoid", g("Add", xr, hr))
    n = g("Tanh", g("Add", xh, g("Mul", q, hh)))
    state = g("Add", n, g("Mul", z, g("Sub", state, n)))
    query = g("Unsqueeze", g.dense(state, "query", U, U), g.ints(1))
    scores = g("Mul", g("MatMul", query, keys), g.weight("scale", value=np.array(U ** -0.5)))
    mixed = g("MatMul", g("Softmax", g("Add", scores, bias), axis=-1), values)
    out = g("Add", g.dense(g("Squeeze", mixed, g.ints(1)), "out", U, U), state)
    out = g("LayerNormalization", out, g.weight("norm.g", U), g.weight("norm.b", U), epsilon=1e-3)
    token = g("ArgMax", g.dense(out, "vocabulary", U, V), axis=1, keepdims=1)
    return token, state


SOURCE = [("source", INT, ["b", "s"]), ("lengths", T.INT32, ["b"])]
MEMORY = [("keys", FLOAT, ["b", U, "s"]), ("values", FLOAT, ["b", "s", U]), ("bias", FLOAT, ["b", 1, "s"])]
TOKEN, STATE = ("token", INT, ["b", 1]), ("state", FLOAT, ["b", U])


def models():
    """unrolled: one; steps: an encoder and a step"""
    g = Graph()
    if a.loop == "steps":
        encode(g)
        s = Graph()
        token, state = step(s, "token", "state", "keys", "values", "bias")
        s("Identity", token, to="next"), s("Identity", state, to="after")
        return [g.model(SOURCE, MEMORY),
                s.model([TOKEN, STATE] + MEMORY, [("next", INT, ["b", 1]), ("after", FLOAT, ["b", U])])]
    memory, token, state, all_tokens = encode(g), "token", "state", []
    for _ in range(a.tokens):
        token, state = step(g, token, state, *memory)
        all_tokens.append(token)
    g("Concat", *all_tokens, axis=1, to="tokens")
    return [g.model(SOURCE + [TOKEN, STATE], [("tokens", INT, ["b", a.tokens])])]


def session(model, folder, i):
    path = f"{folder}/{i}.onnx"
    onnx.save(model, path)
    if a.int8:
        from onnxruntime.quantization import QuantType, quantize_dynamic
        quantize_dynamic(path, f"{folder}/{i}.int8.onnx", weight_type=QuantType.QInt8, per_channel=True)
        path = f"{folder}/{i}.int8.onnx"
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads = a.threads, 1
    o.log_severity_level = 3
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


with tempfile.TemporaryDirectory() as folder:
    sessions = [session(m, folder, i) for i, m in enumerate(models())]
sources = [b[0] for b in lengths.batches("translator", a.batch, 20, a.vocab, "batch")]


def translate(x):
    token, state = np.full((len(x), 1), 2, np.int64), np.zeros((len(x), U), "f")
    feed = {"source": x, "lengths": (x != 0).sum(1).astype(np.int32)}
    if a.loop == "unrolled":
        return sessions[0].run(None, dict(feed, token=token, state=state))[0]
    keys, values, bias = sessions[0].run(None, feed)
    out = []
    for _ in range(a.tokens):
        token, state = sessions[1].run(None, {"token": token, "state": state, "keys": keys, "values": values, "bias": bias})
        out.append(token)
    return np.concatenate(out, 1)


times, started = [], time.perf_counter()
for k in range(a.steps + 1):
    start = time.perf_counter()
    r = translate(sources[k % len(sources)])
    end = time.perf_counter()
    assert r.shape == (a.batch, a.tokens), r.shape
    times.append(end - start)
    if end - started > a.max_seconds:
        break
times = times[1:] or times
times = sorted(times[min(a.warm, max(0, len(times) - 3)):])
print(json.dumps(dict(
    peer="onnxruntime", workload="decode", variant=a.loop + (" int8" if a.int8 else ""), threads=a.threads, B=a.batch,
    units=U, vocab=V, tokens=a.tokens, n_steps=len(times), step_ms=round(1e3 * times[len(times) // 2], 3),
    tok_s=round(a.batch * a.tokens * len(times) / sum(times)), version=ort.__version__,
    peak_rss_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))))
