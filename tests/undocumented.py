"""Public names whose documentation is not whole yet. It may only shrink: tests/test_documentation.py sees to it."""

UNDOCUMENTED = frozenset("""
    Compiled DType Error Tensor UserError checkpoint compile cond cuda.device_count cuda.empty_cache
    cuda.get_device_capability cuda.get_device_name cuda.is_available cuda.max_memory_allocated
    cuda.memory_allocated cuda.memory_reserved cuda.synchronize cuda.why_not custom_jvp custom_vjp detect_anomaly
    fori_loop get_num_threads grad gradcheck gradgradcheck hessian hvp jacfwd jacrev jvp linearize load lower
    manual_seed map native_entries nn.AdaptiveAvgPool1d nn.AdaptiveAvgPool2d nn.AdaptiveAvgPool3d
    nn.AdaptiveMaxPool1d nn.AdaptiveMaxPool2d nn.AdaptiveMaxPool3d nn.AlphaDropout nn.AvgPool1d nn.AvgPool2d
    nn.AvgPool3d nn.BCELoss nn.BCEWithLogitsLoss nn.BatchNorm1d nn.BatchNorm2d nn.BatchNorm3d nn.Bilinear nn.CELU
    nn.ChannelShuffle nn.Conv1d nn.Conv2d nn.Conv3d nn.ConvTranspose1d nn.ConvTranspose2d nn.ConvTranspose3d
    nn.CosineEmbeddingLoss nn.CrossEntropyLoss nn.Dropout nn.Dropout1d nn.Dropout2d nn.Dropout3d nn.ELU nn.Embedding
    nn.EmbeddingBag nn.Flatten nn.Fold nn.GELU nn.GLU nn.GaussianNLLLoss nn.GroupNorm nn.Hardshrink nn.Hardsigmoid
    nn.Hardswish nn.Hardtanh nn.HingeEmbeddingLoss nn.HuberLoss nn.Identity nn.InstanceNorm1d nn.InstanceNorm2d
    nn.InstanceNorm3d nn.KLDivLoss nn.L1Loss nn.LPPool1d nn.LPPool2d nn.LPPool3d nn.LayerNorm nn.LeakyReLU nn.Linear
    nn.LocalResponseNorm nn.LogSigmoid nn.LogSoftmax nn.MSELoss nn.MarginRankingLoss nn.MaxPool1d nn.MaxPool2d
    nn.MaxPool3d nn.Mish nn.Module nn.ModuleDict nn.ModuleList nn.MultiLabelMarginLoss nn.MultiLabelSoftMarginLoss
    nn.MultiMarginLoss nn.MultiheadAttention nn.NLLLoss nn.PReLU nn.Parameter nn.ParameterList nn.PixelShuffle
    nn.PixelUnshuffle nn.PoissonNLLLoss nn.RMSNorm nn.ReLU nn.ReLU6 nn.SELU nn.Sequential nn.SiLU nn.Sigmoid
    nn.SmoothL1Loss nn.SoftMarginLoss nn.Softmax nn.Softmax2d nn.Softmin nn.Softplus nn.Softshrink nn.Softsign
    nn.Tanh nn.Tanhshrink nn.Threshold nn.Transformer nn.TransformerDecoder nn.TransformerDecoderLayer
    nn.TransformerEncoder nn.TransformerEncoderLayer nn.TripletMarginLoss nn.Unflatten nn.Unfold nn.Upsample
    nn.init.bound nn.init.calculate_gain nn.init.constant nn.init.default_generator nn.init.dirac nn.init.eye
    nn.init.fans nn.init.kaiming_normal nn.init.kaiming_uniform nn.init.normal nn.init.ones nn.init.orthogonal
    nn.init.shapes_only nn.init.sizes nn.init.sparse nn.init.trunc_normal nn.init.uniform nn.init.xavier_normal
    nn.init.xavier_uniform nn.init.zeros nn.load_safetensors nn.save_safetensors optim.Accumulated optim.Adadelta
    optim.Adagrad optim.Adam optim.AdamW optim.Adamax optim.Lion optim.MovingAverage optim.NAdam optim.Optimizer
    optim.RAdam optim.RMSprop optim.SGD optim.clip_by_global_norm optim.clip_by_value optim.global_norm save
    saved_bytes scan set_num_threads spec value_and_grad vjp vmap while_loop
""".split())
