"""Where the workbook's checks run: a folder of a reader's that is gone afterwards, and the
package commands/lib/workbook to import. The last argument is the build folder."""
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop()).resolve()
_folder = tempfile.TemporaryDirectory(prefix="t2t-work-")  # removed when Python ends
WORK = pathlib.Path(_folder.name)
os.environ["T2T_WORK"] = str(WORK)
sys.path.insert(0, str(ROOT / "commands/lib"))
