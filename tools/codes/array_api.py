"""Error codes of the array API standard: its namespace, `mlc.array_api`, and DLPack."""

TEXT = r'''
MLC0880 A function of the array API is called with numbers alone.
The standard asks for at least one tensor, by whose dtype and device the numbers are understood.
example python:
    import mlc.array_api as xp
    xp.add(1, 2.0)
fix: make a tensor of one of them, as in xp.asarray(2.0).

MLC0881 There is no such kind of dtypes.
example python:
    import mlc.array_api as xp
    xp.isdtype(xp.float32, "float")
fix: use one of the kinds that the message lists, a dtype, or a tuple of these.

MLC0882 A tensor with the memory of another array is asked for, and it cannot be made without a copy.
example python:
    import mlc.array_api as xp
    xp.asarray([1, 2], copy=False)
fix: leave copy=False out, or pass an array that has the dtype and is on the device.

MLC0883 An axis cannot be removed, or cannot be left out.
The standard removes axes of size 1 only, and takes an only axis for granted, but not one of several.
example python:
    import mlc.array_api as xp
    xp.squeeze(xp.ones((2, 3)), 0)
fix: name an axis of size 1, or pass the axis; mlc.squeeze leaves axes of other sizes as they are.

MLC0884 A tensor is to be shared on a device on which it is not.
example python:
    import mlc
    mlc.ones(2).__dlpack__(dl_device=(2, 0))
fix: move the tensor first, as in x.to("cuda").

MLC0885 There is no such version of the array API standard here.
example python:
    import mlc
    mlc.ones(2).__array_namespace__(api_version="2019.12")
fix: ask for one of the versions that the message lists, or for none.
'''
