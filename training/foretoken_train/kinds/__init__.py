"""Every kind of drafter that can be trained."""

from . import dflash, draft_model, dspark, eagle3, exit, fr_head, hydra, medusa, mtp

KINDS = (eagle3.KIND, mtp.KIND, dflash.KIND, dspark.KIND, medusa.KIND, hydra.KIND, draft_model.KIND,
         fr_head.KIND, exit.KIND)
