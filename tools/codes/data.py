"""Error codes of data loading: datasets, samplers, collation, and the workers of a data loader."""

TEXT = '''
MLC0700 The samples of a batch cannot be stacked.
In corresponding places all samples of a batch have the same shape, length, keys and kind of value.
example python:
    import mlc
    mlc.utils.data.default_collate([mlc.ones(3), mlc.ones(4)])
fix: make the samples alike in the dataset, or pad them in a function that is passed as collate_fn.

MLC0701 A sample contains something that the default collation does not support.
It supports tensors, numpy arrays, numbers, strings, and dicts, lists and tuples of these.
example python:
    import mlc
    mlc.utils.data.default_collate([None, None])
fix: leave it out of the sample, or pass a collate_fn.

MLC0702 Arguments of a dataset or data loader exclude each other.
A batch sampler makes whole batches, a sampler the order, and an iterable-style dataset has an order of its own.
example python:
    import mlc
    mlc.utils.data.DataLoader([1, 2, 3], sampler=[2, 1, 0], shuffle=True)
fix: leave out one of the two.

MLC0703 An argument of a data loader is about workers, and it has none.
Nor can a worker have workers: its process ends with the main process, and could leave them behind.
example python:
    import mlc
    mlc.utils.data.DataLoader([1, 2, 3], prefetch_factor=4)
fix: give num_workers, or leave the argument out.

MLC0704 A number for a sampler or data loader is out of range, or there is nothing to draw from.
example python:
    import mlc
    mlc.utils.data.DataLoader([1, 2, 3], batch_size=0)
fix: the message says which values are possible.

MLC0705 Lengths of datasets or of their parts do not add up.
example python:
    import mlc
    mlc.utils.data.random_split(range(10), [8, 3])
fix: give tensors or datasets of the same length, and splits whose lengths add up to that of the dataset.

MLC0706 A worker of a data loader has ended.
It was killed, or its dataset ended the process. Its batch is lost, so the iteration cannot continue.
example python:
    import os
    import mlc
    class Data(mlc.utils.data.Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, index):
            os._exit(3)
    list(mlc.utils.data.DataLoader(Data(), num_workers=1))
fix: if the system has killed it, use fewer workers or smaller batches, which take less memory; if it crashed, run the
dataset with num_workers=0.

MLC0707 The workers of a data loader have made no batch within the timeout.
example python:
    import time
    import mlc
    class Data(mlc.utils.data.Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, index):
            time.sleep(60)
    list(mlc.utils.data.DataLoader(Data(), num_workers=1, timeout=0.1))
fix: give a longer timeout, or find out what the dataset waits for.

MLC0708 An exception of a dataset cannot be raised as what it is.
A StopIteration would end the loop over the data loader without a trace, and the class of a worker's exception may take
other arguments than a text or exist only in the worker.
example python:
    import mlc
    class Data(mlc.utils.data.Dataset):
        def __len__(self):
            return 4
        def __getitem__(self, index):
            return next(iter([]))
    list(mlc.utils.data.DataLoader(Data()))
fix: the message has the traceback of the exception.

MLC0709 The state of a data loader or sampler does not fit the one that loads it.
A position counts batches, so it means the same samples only with the same batch size, sampler and kind of generator,
and for an iterable-style dataset with as many workers.
example python:
    import mlc
    state = mlc.utils.data.DataLoader(range(8), batch_size=2).state_dict()
    mlc.utils.data.DataLoader(range(8), batch_size=4).load_state_dict(state)
fix: make the loader with the arguments of the one whose state was saved.

MLC0710 A data loader whose batches come in any order is asked for its position.
Which batches have been given out depends on the speed of the workers, so their number is no position.
example python:
    import mlc
    loader = mlc.utils.data.DataLoader(range(8), num_workers=1, in_order=False)
    next(iter(loader))
    loader.state_dict()
fix: use in_order=True, or save the state between two passes.

MLC0711 An object is not the kind of dataset or sampler that is needed.
A map-style dataset has __getitem__ and mostly __len__; an iterable-style one derives from IterableDataset and has
__iter__.
example python:
    import mlc
    mlc.utils.data.DataLoader(x for x in range(3))
fix: define the method that the message names.

MLC0712 An attribute of a data loader is assigned that others were made from.
example python:
    import mlc
    loader = mlc.utils.data.DataLoader(range(8))
    loader.batch_size = 4
fix: make another DataLoader.

MLC0713 The argument `generator` is no source of random numbers.
example python:
    import mlc
    mlc.utils.data.RandomSampler(range(8), generator="seed")
fix: pass an integer seed, an mlc.Generator, or None for one that mlc.manual_seed seeds.

MLC0714 An iteration over a data loader goes on without its workers.
Persistent workers work for one iteration at a time, so a later one takes them; and a forked process does not have the
workers of its parent.
example python:
    import mlc
    loader = mlc.utils.data.DataLoader(range(8), num_workers=1, persistent_workers=True)
    first, second = iter(loader), iter(loader)
    next(first)
fix: make a second DataLoader, or use persistent_workers=False; in a forked process, begin the iteration there.

MLC0747 A file of PyTorch has something that is not data.
Its pickle is interpreted as data, so that it may name tensors, storages, dtypes, sizes, devices and containers, and no
other class or function; nothing of it is called. Tensors of dtypes, layouts and sizes that mlc lacks are refused too.
example python:
    import io, zipfile, mlc
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model/data.pkl", b"cos\\nsystem\\n.")
    file.seek(0)
    mlc.load(file)
fix: save the state_dict() of models and optimizers in PyTorch, rather than the objects.

MLC0748 A file of PyTorch is damaged, or of a format that is not read.
Read are the zip files that torch.save writes since PyTorch 1.6. TorchScript programs are none, nor plain pickles.
example python:
    import io, mlc
    mlc.load(io.BytesIO(b"PK\\3\\4 and no more"))
fix: save it again; a file of an older version is loaded in PyTorch and saved again.

MLC0749 A trainer is made with arguments that it cannot train with.
example python:
    import mlc
    model = mlc.nn.Linear(2, 1)
    mlc.Trainer(model, mlc.optim.SGD(model.parameters()), mlc.nn.MSELoss(), accumulate=0)
fix: the message says what is expected; a loader is one that can be iterated over once per epoch.

MLC0750 A training cannot continue from its checkpoints.
None of the files in the folder is whole, or they are of a trainer with other parts.
example python:
    import mlc
    model = mlc.nn.Linear(2, 1)
    trainer = mlc.Trainer(model, mlc.optim.SGD(model.parameters()), mlc.nn.MSELoss())
    trainer.load_state_dict({"model": model.state_dict()})
fix: make the trainer with the arguments of the one that was saved, or train with resume=False.

MLC0764 An object is no data that mlc.save writes.
Files hold no code, so that only tensors, arrays, numbers, strings, modules and lists, tuples, dicts and sets of them
can be written, none of which contains itself.
example python:
    import mlc
    mlc.save({"made": iter([1])}, "data.mlc")
fix: leave such objects out, or write what they can be made of again.

MLC0765 A file names a class or a function that it may not name.
A file chooses no code: its modules are those of mlc.nn, and those that the program allows.
example python:
    import mlc, os, tempfile
    class Scale(mlc.nn.Module):
        pass
    path = os.path.join(tempfile.mkdtemp(), "scale.mlc")
    mlc.save(Scale(), path)
    mlc.load(path)
fix: load it within mlc.serialization.safe_globals([Scale]), or with weights_only=False.

MLC0766 A file of data is damaged, or mlc.save did not write it.
example python:
    import io, mlc
    mlc.load(io.BytesIO(b"MLC"))
fix: save it again.

MLC0768 A module is to be called on several devices at once.
example python:
    import mlc
    mlc.nn.parallel.data_parallel(mlc.nn.Identity(), mlc.ones(2), ["cuda:0", "cuda:1"])
fix: call the module itself.

MLC0769 LBFGS is used as another optimizer, or with an unknown line search.
example python:
    import mlc
    mlc.optim.LBFGS([mlc.ones(2)], line_search_fn="armijo")
fix: give it one group of parameters, no line search or "strong_wolfe", and call step with a closure.

MLC0780 An optimizer is asked for an implementation that does not exist.
An update is one compiled function for all parameters, so that foreach, fused and capturable change nothing; and it is
no part of the graph of derivatives.
example python:
    import mlc
    mlc.optim.SGD([mlc.ones(2)], differentiable=True)
fix: leave the flag out; the functional update of an optimizer without parameters has derivatives.

MLC0781 Averaged parameters are given two ways to be averaged, or a decay outside of [0, 1].
example python:
    import mlc
    mlc.optim.swa_utils.get_ema_avg_fn(1.5)
fix: give one of avg_fn and multi_avg_fn, and a decay such as 0.999.

MLC0782 Automatic mixed precision is asked for on an unknown type of device, or in another dtype.
example python:
    import mlc
    mlc.autocast("tpu")
fix: use "cpu" or "cuda", and float16 or bfloat16.

MLC0783 A scaler of gradients is used out of order, or in a way that makes no sense with scaled gradients.
example python:
    import mlc
    mlc.amp.GradScaler("cpu").update()
fix: scale(loss).backward(), then unscale_ if need be, step and update, in this order.

MLC0793 A package that is not installed is needed.
What few programs need is an optional dependency.
example text:
    error[MLC0793]: SummaryWriter needs the package tensorboardX: No module named 'tensorboardX'
fix: install the package that the message names.

MLC0794 A model of a hub cannot be loaded.
Only folders of this machine are hubs: mlc opens no connection. Such a folder has a file hubconf.py, whose functions are
the entry points, and which is run as a part of the program.
example python:
    import mlc
    mlc.hub.load("pytorch/vision", "resnet18")
fix: clone the repository, and pass its folder and source="local".

MLC0795 A benchmark is asked for something that cannot be timed.
example python:
    import mlc
    mlc.utils.benchmark.Timer("x +")
fix: give a statement of Python; all names that it uses are in setup or globals.

MLC0796 A profile is asked for something that it does not measure.
It measures calls on the CPU, and with kernels=True what happens in them.
example python:
    import mlc
    mlc.profiler.profile(with_flops=True)
fix: the message says what there is.

MLC0797 A summary is asked for something that is no module.
example python:
    import mlc
    mlc.summary(mlc.ones(2))
fix: pass the module, and the arguments of an example call after it.

MLC0798 A tree cannot be made of so many leaves, or has none to be reduced.
example python:
    import mlc
    mlc.tree.unflatten(mlc.tree.structure([1, 2]), [3])
fix: pass as many leaves as the structure has, or an initial value.

MLC0799 A compiled function cannot be pickled.
As all functions, it is pickled by its name, under which the other process has to find it. Copies of it are itself.
example python:
    import mlc, pickle
    pickle.dumps(mlc.compile(lambda x: x + 1))
fix: define it at the top level of a module, by the decorator @mlc.compile.

MLC0784 A constraint, a transform or a divergence of distributions does not have what is asked of it.
example python:
    import mlc
    mlc.distributions.kl_divergence(mlc.distributions.Normal(0.0, 1.0), mlc.distributions.Poisson(1.0))
fix: the message says what there is; register_kl adds a divergence of two classes.
'''
