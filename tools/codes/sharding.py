"""Error codes of meshes: how tensors are divided among ranks, and the program of one rank."""

TEXT = r'''
MLC0960 A mesh has an axis without ranks, or no axis.
example python:
    import mlc
    mlc.distributed.mesh({"data": 0})
fix: give each axis a positive number of ranks.

MLC0961 A mesh has no axis of this name.
example python:
    import mlc
    mesh = mlc.distributed.mesh({"data": 1})
    mlc.distributed.shard(mlc.ones(2), "model", mesh=mesh)
fix: use one of the axes that the message lists.

MLC0962 A tensor cannot be divided as specified.
Each dimension is divided into equal blocks, so its size is a multiple of the number of ranks, and an axis of the mesh
divides one dimension only.
example mlir propagate-shardings:
    func.func @f(%x: tensor<5xf32>) -> tensor<5xf32> attributes {
        mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"]]>]} {
      func.return %x : tensor<5xf32>
    }
fix: divide another dimension, pad the tensor, or leave it whole.

MLC0963 A collective is interpreted without the other ranks.
example python:
    from mlc.ir.interp import run_function
    from mlc.ir.parser import parse_module
    import numpy as np
    run_function(parse_module("""func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = shard.all_reduce %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} : tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }"""), "f", [np.ones(2, np.float32)])
fix: interpret all ranks together, by mlc.dialects.shard.ranks.interpret.

MLC0964 Ranks have different replicas of a tensor that they should have alike.
It is found when the shards of all ranks are put together.
example text:
    error[MLC0964]: rank 1 has another replica than the ranks before it
fix: give all ranks the same arguments where a tensor is not divided; if they have them, it is a defect of a pass.

MLC0965 Two ranks that wait for each other are at different collectives.
example text:
    error[MLC0965]: rank 1 is at shard.all_reduce of tensor<2xf32> along d, rank 0 at shard.all_gather of
    tensor<2xf32> along d
fix: have all ranks of a group call the same collectives in the same order.

MLC0966 A rank waits for another one that never gets to the collective.
example text:
    error[MLC0966]: rank 0 waits at shard.all_reduce along d for rank 1, which never gets there
fix: have all ranks of a group call the same collectives in the same order.

MLC0967 A program cannot be divided among ranks.
Calls that cannot be inlined (recursion), results that are no tensors, sizes that depend on data and complex tensors are
not supported.
example mlir partition:
    func.func private @g(%x: tensor<2xf32>) -> tensor<2xf32> { func.return %x : tensor<2xf32> }
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> attributes {
        mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"]]>]} {
      %0 = func.call @g(%x) : tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
fix: compute this part outside of the mesh, on x.cpu().

MLC0968 The factors of an operation are not those of its sharding rule.
`factors` has the axes of the mesh along each factor; the pass propagate-shardings writes it.
example mlir partition:
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> attributes {
        mesh = #shard.mesh<axes = ["d"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [["d"]]>]} {
      %0 = tensor.neg %x {factors = [["d"], []], shardings = [#shard.sharding<dims = [["d"]]>]} : tensor<2xf32>
      func.return %0 : tensor<2xf32>
    }
fix: run propagate-shardings, or give one list of axes per factor.

MLC0969 There is no such mesh, or the job has not as many ranks as the mesh.
example python:
    import mlc
    mlc.distributed.mesh({"data": 2})
fix: start as many ranks (mlc run --ranks 2, mpiexec -n 2, torchrun), or pass abstract=True to look at programs only.

MLC0980 A checkpoint has a tensor on a mesh of other ranks than those that write it.
Each rank writes its own shards, so all ranks of the mesh take part.
example text:
    error[MLC0980]: a tensor on a mesh of 4 ranks is written by all of them, and the group has 2
fix: call mlc.distributed.init_process_group(), and save without another group.

MLC0981 An operation takes values of two stages of a pipeline.
An operation is at the stage of its operands. A value goes to another stage as an argument of a module that is there.
example mlir split-stages:
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> attributes {
        mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]]>],
        result_shardings = [#shard.sharding<dims = [[]]>], partitioned = true} {
      %0 = shard.stage %x {stage = 0} : tensor<2xf32>
      %1 = tensor.neg %0 : tensor<2xf32>
      %2 = shard.stage %1 {stage = 1} : tensor<2xf32>
      %3 = tensor.exp %2 : tensor<2xf32>
      %4 = tensor.mul %1, %3 : tensor<2xf32>
      func.return %4 : tensor<2xf32>
    }
fix: compute it in a module with a stage, and pass all of its operands to that module.

MLC0982 A stage of a pipeline takes a value of a later one.
example mlir split-stages:
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> attributes {
        mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, arg_shardings = [#shard.sharding<dims = [[]]>],
        result_shardings = [#shard.sharding<dims = [[]]>], partitioned = true} {
      %0 = shard.stage %x {stage = 1} : tensor<2xf32>
      %1 = tensor.neg %0 : tensor<2xf32>
      %2 = shard.stage %1 {stage = 0} : tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }
fix: number the stages in the order in which modules are called.

MLC0983 A pipeline has no such schedule, or it does not suit the numbers of stages, ranks and microbatches.
Schedules gpipe and 1f1b have at least one stage for each rank along the axis `stage`; interleaved has as many on each,
and rounds of as many microbatches as there are ranks.
example python:
    import mlc
    mlc.distributed.pipeline(lambda x: x.sum(), mlc.ones(2), microbatches=2, schedule="zigzag")
fix: choose another schedule, or other numbers, as the message says.

MLC0984 A microbatch depends on a later one, or there are two schedules.
Microbatches pass through a pipeline in their order, forward and backward; a function has one pipeline.
example mlir split-stages:
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> attributes {
        mesh = #shard.mesh<axes = ["stage"], sizes = [1]>, arg_shardings = [#shard.sharding<dims = [[]]>],
        result_shardings = [#shard.sharding<dims = [[]]>], partitioned = true} {
      %0 = shard.microbatch %x {number = 1, schedule = "gpipe"} : tensor<2xf32>
      %1 = shard.microbatch %0 {number = 0, schedule = "1f1b"} : tensor<2xf32>
      %2 = shard.stage %1 {stage = 0} : tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }
fix: call mlc.distributed.pipeline once in a compiled function, and let a microbatch use nothing of later ones.

MLC0985 A batch is not divided into so many microbatches.
example python:
    import mlc
    mlc.distributed.pipeline(lambda x: x.sum(), mlc.ones(3), microbatches=2)
fix: choose a number of microbatches that divides the rows of the batch, and those that each rank has.

MLC0986 A stage of a pipeline is that of a module, and has a number from 0; so has a microbatch.
example python:
    import mlc
    mlc.distributed.stage(mlc.nn.Linear(2, 2), -1)
fix: number stages from 0, in the order in which modules are called.

MLC0987 A weight of a pipeline is on other ranks than those that use it.
With schedules gpipe and 1f1b, a rank has consecutive stages, if there are more of them than ranks; with interleaved,
stages lie in turns, and so do weights, unless `distribute` is told the schedule.
example mlir split-stages:
    func.func @f(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> attributes {
        mesh = #shard.mesh<axes = ["stage"], sizes = [2]>, partitioned = true,
        arg_shardings = [#shard.sharding<dims = [[]]>, #shard.sharding<dims = [[]], stage = 1>],
        result_shardings = [#shard.sharding<dims = [[]]>]} {
      %0 = shard.microbatch %x {number = 0, schedule = "gpipe"} : tensor<2xf32>
      %1 = shard.stage %0 {stage = 0} : tensor<2xf32>
      %2 = tensor.neg %1 : tensor<2xf32>
      %3 = shard.stage %2 {stage = 1} : tensor<2xf32>
      %4 = tensor.mul %3, %w : tensor<2xf32>
      %5 = shard.stage %4 {stage = 2} : tensor<2xf32>
      %6 = tensor.exp %5 : tensor<2xf32>
      %7 = shard.stage %6 {stage = 3} : tensor<2xf32>
      %8 = tensor.neg %7 : tensor<2xf32>
      func.return %8 : tensor<2xf32>
    }
fix: mlc.distributed.distribute(model, mesh, schedule="gpipe").

MLC0988 No plan of a transformer fits the memory of the ranks.
Plans divide its layers, its heads and the sequences of a batch evenly among all ranks.
example python:
    import mlc
    model = mlc.distributed.Transformer(8, 512, 8, 8, 2048, 32000, 1024)
    cluster = mlc.distributed.Cluster(1e14, 1e12, 1e-6, 1e10, 1e-5)
    mlc.distributed.plan_transformer(model, cluster, ranks=4, batch=64, memory=1e6)
fix: take more ranks, with more memory, or numbers of ranks and of sequences that divide.

MLC0989 A collective that is begun is not waited for once.
Its request holds the operand and the result until then; so does MPI's.
example mlir:
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %q = shard.all_reduce_start %x {mesh = #shard.mesh<axes = ["d"], sizes = [2]>, axes = ["d"]} :
          (tensor<2xf32>) -> !shard.request<tensor<2xf32>>
      func.return %x : tensor<2xf32>
    }
fix: write one shard.wait for each start, in the same block.
'''
