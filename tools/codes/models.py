"""Error codes of language models."""

TEXT = r'''
MLC0910 A folder holds no language model, or one of its files cannot be read.
A model is a folder as transformers writes it: config.json, and model.safetensors or shards with an index.
example python:
    import mlc
    mlc.models.load("no-such-folder")
fix: give the path of the folder itself, with its files; a name on a hub is not looked up.

MLC0911 mlc does not run the architecture of a language model, or a feature that its config.json asks for.
What a field of the configuration would change is computed, or refused; nothing is left out silently.
example python:
    import json, pathlib, tempfile
    import mlc
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps({"architectures": ["WhisperForConditionalGeneration"]}))
    mlc.models.load(folder)
fix: use a model of an architecture that the message lists.

MLC0912 The weights of a language model are not those that its config.json describes.
A weight is missing, has another shape or type, or is not a part of the model.
example python:
    import json, pathlib, tempfile
    import mlc
    from mlc import nn
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "vocab_size": 8, "hidden_size": 4, "intermediate_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 1}))
    nn.save_safetensors(folder / "model.safetensors", {"model.norm.weight": mlc.ones(4)})
    mlc.models.load(folder)
fix: get all files of the folder again, from one place.

MLC0913 A language model has no tokenizer, or one that cannot be read.
Texts become tokens by the rules of tokenizer.json, which the package tokenizers reads.
example text:
    error[MLC0913]: models/small has no tokenizer.json
      help: pass prompts as numbers of tokens, or add the file
fix: add the tokenizer.json of the model, or pass prompts as lists of tokens.

MLC0914 A language model has no template of conversations, or its template does not take the messages.
The template is in chat_template.jinja or tokenizer_config.json, and says in which form the model was trained.
example text:
    error[MLC0914]: models/base has no template of conversations
      help: it was not trained on conversations: use mlc.generate
fix: use a model that was trained on conversations, or mlc.generate with a text; mind the order of the roles.

MLC0915 A prompt is empty, longer than the model sees, or has numbers that are no tokens.
The positions of a model are limited, and the answer needs at least one.
example text:
    error[MLC0915]: a prompt has 2048 tokens, and the model sees 2048, the answer included
      help: shorten it
fix: shorten the prompt, and use tokens of the model's own tokenizer.

MLC0916 An option of generation is out of its range.
The message shows the range.
example python:
    import mlc
    mlc.models.Sampling(top_p=1.5)
fix: use a value of the range.

MLC0917 A language model is loaded, and a package that it needs is not installed.
Tokenizers are read by the package tokenizers, and templates of conversations run in jinja2's sandbox.
example text:
    error[MLC0917]: the package tokenizers, which reads tokenizer.json, is not installed
fix: pip install 'mlc[lm]'.

MLC0918 A scheduler has as many requests waiting as it takes.
The memory of a scheduler is fixed: requests wait for a free slot, and no more than its `queue` do.
example python:
    import mlc
    model = mlc.models.load("examples/assistant")
    scheduler = mlc.models.Scheduler(model, slots=1, queue=0)
    requests, _ = model.requests(["The", "The"])
    for request in requests:
        scheduler.submit(request, print)
fix: submit the request later, or make the scheduler with more slots or a longer queue.

MLC0919 A constraint of generation is wrong, or asks for something that is not enforced.
Constraints are JSON schemas, regular expressions and grammars. What they say is enforced, or refused; nothing is left
out silently.
example python:
    import mlc
    mlc.models.Constraint.json_schema({"type": "array", "uniqueItems": True})
fix: leave out or replace what the message names.

MLC0920 Models are served, and a package that the server needs is not installed.
The server runs in uvicorn, with routes of starlette and metrics of prometheus-client.
example text:
    error[MLC0920]: the package starlette, which mlc serve needs, is not installed
fix: pip install 'mlc[serve]'.

MLC0921 A file that is to be served holds no function that the Open Inference Protocol can call.
The protocol has named arrays of numbers: no containers, complex numbers or files of data.
example text:
    error[MLC0921]: weights.mlc holds data and no compiled function
fix: save a compiled function whose arguments and results are arrays.

MLC0922 A GGUF file cannot be read.
All that it says is checked: counts, lengths and offsets against its size, names, types, and that nothing is nested.
example python:
    import pathlib, tempfile
    import mlc
    file = pathlib.Path(tempfile.mkdtemp()) / "model.gguf"
    file.write_bytes(b"GGUF" + bytes(20))
    mlc.models.load(file)
fix: get the file again, or write it again with the current llama.cpp or with mlc quantize.

MLC0923 Bytes are not the blocks of an encoding.
A row of a quantised tensor is a sequence of whole blocks, and each encoding has blocks of a size of its own.
example mlir:
    func.func @f(%x: tensor<2x33xui8>) -> tensor<2x32xf32> {
      %r = tensor.dequantize %x {encoding = "q8_0"} : (tensor<2x33xui8>) -> tensor<2x32xf32>
      func.return %r : tensor<2x32xf32>
    }
fix: use the encoding that the bytes were written in; rows of q8_0 are multiples of 34 bytes, for instance.

MLC0924 The scores of a language model are infinite or NaN.
No token can be chosen by them. The answer ends here, with an error; others that are computed with it do not notice.
example python:
    import numpy as np
    import mlc
    model = mlc.models.load("examples/assistant")
    with mlc.no_grad():
        next(model.module.parameters()).fill_(float("nan"))
    mlc.generate(model, "The", max_tokens=2)
fix: look for weights that are not finite: the file may be damaged, or a training have diverged.

MLC0990 An encoder is asked to generate.
Encoders, such as BERT, give vectors of texts: each token sees those behind it, so that no answer can be written.
example python:
    import json, pathlib, tempfile
    import numpy as np
    import mlc
    from mlc.models.encoder import Encoder
    from mlc.models.encoder_config import read_encoder_config
    from mlc.models.fields import Fields
    from mlc.models.parameters import Drawn, Place
    folder = pathlib.Path(tempfile.mkdtemp())
    config = {"architectures": ["BertModel"], "vocab_size": 9, "hidden_size": 4, "intermediate_size": 8,
              "num_hidden_layers": 1, "num_attention_heads": 1}
    (folder / "config.json").write_text(json.dumps(config))
    module = Encoder(read_encoder_config(Fields(config, "config.json")), Place(Drawn(0)))
    mlc.nn.save_safetensors(folder / "model.safetensors", module.state_dict())
    mlc.generate(mlc.models.load(folder), [1, 2, 3])
fix: use model.embed, or POST /v1/embeddings; to generate, load a decoder.

MLC0991 A folder asks for vectors of texts in a way that mlc does not compute.
modules.json and 1_Pooling/config.json, as sentence-transformers writes them, say how the numbers of tokens become one
vector. What they ask for is computed, or refused.
example text:
    error[MLC0991]: models/small/modules.json: its modules are Transformer, Pooling, LSTM
      help: mlc runs Transformer, Pooling, and Dense and Normalize behind them
fix: use a model with modules that the message lists.

MLC0992 A draft is none for the model.
A draft guesses tokens that the model verifies, several at once: a model of the same vocabulary, or a lookup. Models
whose keys are turned by the length of the text cannot verify several tokens at once.
example python:
    import mlc
    mlc.generate(mlc.models.load("examples/assistant"), "The", draft=mlc.models.PromptLookup(tokens=0))
fix: use a draft of the same vocabulary with 1 to 64 tokens, or none.

MLC0993 An option of generation does not go with a beam search, or one of its own is out of its range.
A beam search looks for the answer of the greatest log-probability: nothing is drawn, and no answer is known before it
ends.
example python:
    import mlc
    mlc.generate(mlc.models.load("examples/assistant"), "The", num_beams=4, temperature=1.0)
fix: leave out the option, or num_beams.

MLC0994 Numbers are too large for the type that they are written as, or for the blocks that they are quantised to.
An f16 is 65504 at most, and so is the scale of a block, whose integers have 4 to 8 bits.
example python:
    import numpy as np
    from mlc.models.gguf.quantization import quantize
    quantize(np.full((1, 256), 1e8, np.float32), "q4_k")
fix: write the tensor as f32 or bf16, or find out why a model has such numbers.

MLC0998 A model cannot be quantised with these batches.
The range of a layer's inputs is that of the batches: each layer that is quantised has to be called, with finite
numbers.
example python:
    import mlc
    from mlc import nn
    mlc.quantization.quantize(nn.Linear(2, 2), [])
fix: give inputs like those that the model will see, and to `keep` the names of layers that they do not reach.
'''
