"""The kind of file system that a folder is on: network file systems may break what databases rely on."""

import os
import re
from pathlib import Path

_OF_THE_KERNEL = "nfs nfs4 cifs smb3 smbfs 9p afs lustre gpfs ceph beegfs glusterfs"
_OF_USERS = "sshfs glusterfs ceph s3fs rclone goofys blobfuse gcsfuse"
NETWORK = frozenset((*_OF_THE_KERNEL.split(), *(f"fuse.{kind}" for kind in _OF_USERS.split())))
"""Kinds of file system that other computers may write to at the same time."""
_MOUNTS = Path("/proc/mounts")


def kind_of(folder: Path, mounts: Path = _MOUNTS) -> str:
    """The kind of file system, such as 'ext4' or 'nfs4'; '' if unknown, as on every system but Linux.

    The folder is on the mount with the longest path above it; of mounts with equal paths, the last one counts.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    here = os.path.join(os.path.realpath(folder), "")
    found = [(os.path.join(_unescaped(line.split(" ")[1]), ""), line.split(" ")[2]) for line in lines]
    above = [
        (len(point), number, kind) for number, (point, kind) in enumerate(found) if here.startswith(point)
    ]
    return max(above)[2] if above else ""


def _unescaped(path: str) -> str:
    """Blanks and backslashes are written there by their number."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), path)
