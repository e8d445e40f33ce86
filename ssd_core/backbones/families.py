"""The families of backbones.

A family is a module with FAMILY (its name), matches(checkpoint) -> bool (decided by tensor names)
and load(checkpoint, device, dtype) -> Backbone. Each family has one entry in FAMILIES.
"""

from . import (
    chameleon,
    emu3,
    emu3_5,
    glm_image,
    janus,
    llamagen,
    lumina2,
    postcard,
    simplear,
    tar,
)

FAMILIES = (postcard, janus, llamagen, tar, chameleon, lumina2, emu3, emu3_5, simplear, glm_image)
