"""Every kind of drafter that can be trained."""

from . import dflash, eagle3, mtp

KINDS = (eagle3.KIND, mtp.KIND, dflash.KIND)
