#!/usr/bin/env python3
"""Exports small models of many architectures, with inputs and what PyTorch computes of them, for make zoo.

    python3 zoo.py --list                 their names
    python3 zoo.py FOLDER [NAME ...]      exports all, or those
    python3 zoo.py --record ../../tests/models/zoo.txt     writes the models that make test runs without PyTorch

The models are in models/, by family. Each is traced by export.py; its weights are those that it makes itself, behind a
fixed seed, with statistics and scales that are not 0 and 1. Per model: NAME.json, NAME.safetensors, NAME.input0.npy ..
and NAME.output0.npy .., other_input and other_output for a second set, exact and other_exact for the outputs in f64;
NAME.failed says why there is no such model. Models marked half are written again in bfloat16 and float16. models.txt
lists all with their tolerance (0: the strict one). No two models may have the same ops with the same attributes, sizes
apart."""
import collections, json, os, sys, time, warnings
import numpy
import torch
import export
from models import load_all

SIZES = {"size", "sizes", "shape", "split_size", "split_sizes", "normalized_shape", "output_size", "input_size",
         "repeats", "start",
         "end", "index", "length", "input_sizes", "self_sym_sizes", "dim_size", "s", "_tensor_list_sizes",
         "num_weights", "last_dim_size", "storage_offset", "num_classes", "N", "C", "HxW", "eps", "value", "other",
         "fill_value", "lambd"}

# What make test runs: they have most of the ops that its other models lack.
KEPT = ("image_classifier_step temporal_fusion normalizers harmonic_synthesizer gaussian_process nerf "
        "ternary_integers policy_gradient_step llama_complex kalman_filter voxel_pool adam_step radial_basis "
        "alexnet gat categorical_dqn reformer segmentation_step camera_pose wave_rnn nucleus_sampling "
        "spectral_net quantised_net bilateral_filter").split()


def seed_of(name):
    return sum(ord(c) * 31 ** (i % 5) for i, c in enumerate(name)) % 100003


def make_net(name, make):
    """The model with its weights: norms get statistics and scales that do not hide what they do."""
    torch.manual_seed(seed_of(name))
    net = make()
    with torch.no_grad():
        for module in net.modules():
            if isinstance(getattr(module, "running_var", None), torch.Tensor):
                module.running_var.uniform_(0.5, 1.5)
                module.running_mean.normal_(0, 0.2)
            if "Norm" in type(module).__name__:
                for key, tensor in module.named_parameters(recurse=False):
                    tensor.uniform_(0.6, 1.4) if "weight" in key else tensor.normal_(0, 0.2)
    return net.eval()


def make_inputs(texts, seed):
    """1x3x8x8 of normal numbers, 2x5:int64<10, 3:bool."""
    torch.manual_seed(seed)
    inputs = []
    for text in texts:
        text, _, bound = text.partition("<")
        sizes, _, dtype = text.partition(":")
        dims, dtype = [int(d) for d in sizes.split("x") if d], getattr(torch, dtype or "float32")
        inputs.append(torch.randn(dims).to(dtype) if dtype.is_floating_point else torch.randint(0, int(bound or 2),
                dims).to(dtype))
    return inputs


def flat_tensors(results):
    return [t.detach() for t in torch.utils._pytree.tree_flatten(results)[0] if isinstance(t, torch.Tensor)]


def compute(name, make, inputs, dtype=torch.float32, through=None):
    """What PyTorch gives, in a dtype; with weights and inputs that have been rounded to another."""
    torch.set_default_dtype(torch.float32)
    net = make_net(name, make)
    if through:
        net.to(through).to(dtype)
        inputs = [x.to(through) if x.is_floating_point() else x for x in inputs]
    torch.set_default_dtype(dtype)
    try:
        with torch.no_grad():
            wide = {torch.float32: torch.complex64, torch.float64: torch.complex128}[dtype]
            net._apply(lambda t: t.to(dtype) if t.is_floating_point() else t.to(wide) if t.is_complex() else t)
            return flat_tensors(net(*[x.to(dtype) if x.is_floating_point() else x.clone() for x in inputs]))
    finally:
        torch.set_default_dtype(torch.float32)


def save(path, kind, tensors):
    for i, tensor in enumerate(tensors):
        numpy.save("%s.%s%d.npy" % (path, kind, i), tensor.resolve_conj().resolve_neg().contiguous().numpy())


def multiset(document):
    """Its ops with their attributes, those that are sizes left out."""
    rows = collections.Counter()
    for node in document.nodes:
        rows[node["op_type"], json.dumps({k: v for k, v in node["attrs"].items() if k not in SIZES},
                                         sort_keys=True)] += 1
    return tuple(sorted(rows.items()))


def write_files(path, document, dtype=None):
    record, state = document.json(os.path.basename(path)), document.state
    for node in record["nodes"] if dtype else []:
        if not node["inputs"] and node["outputs"][0]["dtype"] == "float32": # the default, said
            node["attrs"]["dtype"] = "torch.float32"
    text = json.dumps(record, separators=(",", ":"))
    if dtype:
        word = export.DTYPES[dtype][0]
        text = text.replace('"float32"', '"%s"' % word).replace('"torch.float32"', '"torch.%s"' % word)
        state = {k: v.to(dtype) if v.is_floating_point() else v for k, v in state.items()}
    with open(path + ".json", "w") as out:
        out.write(text)
    export.write_safetensors(path + ".safetensors", state, document.used)


def write_exact(path, name, make, inputs, kind):
    """Some models make numbers of f32 whatever the default: they have no run in f64."""
    try:
        exact = compute(name, make, inputs, torch.float64)
        save(path, kind, exact if all(t.dtype != torch.float32 for t in exact) else [])
    except Exception: # whatever PyTorch raises
        pass


def export_model(folder, name, make, texts, half):
    """Returns its multiset, and the lines of models.txt."""
    path = os.path.join(folder, name)
    sets = [make_inputs(texts, 1), make_inputs(texts, 2)]
    document = export.Document(*export.trace(make_net(name, make), sets[0]))
    write_files(path, document)
    for kind, inputs in zip(("", "other_"), sets):
        save(path, kind + "input", inputs)
        save(path, kind + "output", compute(name, make, inputs))
        write_exact(path, name, make, inputs, kind + "exact")
    lines = ["%s 0" % name]
    for dtype in (torch.bfloat16, torch.float16) if half else ():
        low = "%s.%s" % (path, export.DTYPES[dtype][0])
        write_files(low, document, dtype)
        for kind, inputs in zip(("", "other_"), sets):
            save(low, kind + "input", inputs)
            save(low, kind + "output", compute(name, make, inputs, through=dtype))
        lines.append("%s 2e-2" % os.path.basename(low))
    return multiset(document), lines


# ---- the models that tests/models keeps ----

def fill(shape, dtype, seed, bound=0, scale=1.0):
    """The numbers of tests/models/README.md."""
    n = ((torch.arange(torch.Size(shape).numel()) * 2654435761 + seed * 40503 + 12345) % 2**32 >> 16).reshape(shape)
    if dtype == torch.bool:
        return n % 2 == 1
    if not dtype.is_floating_point:
        return (n % (bound or 100)).to(dtype)
    return ((n.to(torch.float32) / 32768 - 1) * torch.tensor(scale)).to(dtype)


def plain_record(document, name, parameters):
    """Its JSON without what readers do not need; what is no parameter is a constant with its data."""
    record = document.json(name)
    for node in record["nodes"]:
        node["inputs"] = [{k: v for k, v in t.items() if k not in ("shape", "dtype")} for t in node["inputs"]]
        node["outputs"] = [{k: v for k, v in t.items() if not k.startswith("producer")} for t in node["outputs"]]
    constants = [w for w in record["weights"] if w["name"] not in parameters]
    record["weights"] = [w for w in record["weights"] if w["name"] in parameters]
    record["constants"] = {w["name"]: {"data": document.state[w["name"]].tolist(), "dtype": w["dtype"],
                                       "shape": w["shape"]} for w in constants}
    return json.dumps(record, separators=(",", ":"))


def record_model(name, make, texts):
    net = make_net(name, make)
    inputs = make_inputs(texts, 1)
    bounds = [int(text.partition("<")[2] or 0) for text in texts]
    inputs = [fill(x.shape, x.dtype, 1 + i, bounds[i], 2.0) for i, x in enumerate(inputs)]
    document = export.Document(*export.trace(net, inputs))
    parameters = dict(net.named_parameters())
    order = [key for key in document.used if key in parameters]
    with torch.no_grad():
        for i, key in enumerate(order):
            parameters[key].copy_(fill(parameters[key].shape, torch.float32, 1000 + i, 7, 0.3))
        results = flat_tensors(net(*[x.clone() for x in inputs]))
    lines = ["model %s zoo 2e-05" % name, plain_record(document, name, set(order))]
    lines += ["input %s %d" % (record["name"], bound) for record, bound in zip(document.inputs, bounds)]
    lines += ["weight %s" % key for key in order]
    for t in results:
        lines.append("out %d %s" % (t.numel(), " ".join("%.9g" % x for x in t.flatten().tolist())))
    return "\n".join(lines) + "\nend\n"


def clear(path):
    folder, name = os.path.split(path)
    for file in os.listdir(folder or "."):
        if file.startswith(name + "."):
            os.remove(os.path.join(folder, file))


def main():
    models = load_all()
    if sys.argv[1:] == ["--list"]:
        print("\n".join(models))
        return
    if sys.argv[1] == "--record":
        with open(sys.argv[2], "w") as out:
            for name in sys.argv[3:] or KEPT:
                out.write(record_model(name, *models[name][:2]))
        return
    folder, chosen = sys.argv[1], sys.argv[2:] or list(models)
    os.makedirs(folder, exist_ok=True)
    seen, all_lines, twins, begin = {}, [], 0, time.time()
    for name in chosen:
        make, texts, half = models[name]
        clear(os.path.join(folder, name))
        try:
            rows, lines = export_model(folder, name, make, texts, half)
        except (Exception, SystemExit) as error: # said where it is run, too
            rows, lines = name, ["%s 0" % name]
            with open(os.path.join(folder, name + ".failed"), "w") as out:
                out.write("%s: %s" % (type(error).__name__, error))
            print("%s: %s: %s" % (name, type(error).__name__, error), file=sys.stderr)
        if rows in seen:
            twins += 1
            print("%s: the ops of %s, with the same attributes" % (name, seen[rows]), file=sys.stderr)
        seen[rows] = name
        all_lines += lines
    with open(os.path.join(folder, "models.txt"), "w") as out:
        out.write("\n".join(all_lines) + "\n")
    print("%d models exported by torch %s, %d of them with the ops of another, %.0f s" %
          (len(chosen), torch.__version__, twins, time.time() - begin), file=sys.stderr)
    sys.exit(1 if twins else 0)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    main()
