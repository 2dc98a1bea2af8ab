"""The build of a wheel: it compiles the kernel library (tools/kernel_library) beside the sources that it belongs to.

Without a library everything works, and the first use of each operation is compiled; so a machine that cannot build one,
such as one that is no x86-64 Linux, gets a warning and a wheel without. The library is that of the machine's own level;
MLC_KERNEL_LIBRARY=x86-64-v3,x86-64-v4 makes those of others, and MLC_KERNEL_LIBRARY=0 none. An editable install has
none, since its sources change: `mlc cache warm` compiles the same operations into the compile cache.
"""

import os
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithKernels(build_py):
    def run(self) -> None:
        super().run()
        wanted = os.environ.get("MLC_KERNEL_LIBRARY", "")
        if self.editable_mode or wanted == "0":
            return
        levels = [word for level in wanted.split(",") if level for word in ("--level", level)]
        folder = os.path.join(self.build_lib, "mlc", "kernel_library")
        paths = [os.path.abspath(self.build_lib), *filter(None, [os.environ.get("PYTHONPATH")])]    # pip's has numpy
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "MLC_CACHE": "0",
                       "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-m", "mlc.tools.kernel_library", os.path.abspath(folder), *levels],
                              env=environment, check=False)
        if done.returncode:
            self.warn("there is no kernel library in this wheel: the first use of each operation is compiled")


setup(cmdclass={"build_py": BuildWithKernels})
