"""How far numbers can be trusted: intervals, paired comparison of bots, agreement. Pure; every draw is seeded.

The modules need numpy, so import them where they are used, once there are scores to reckon with.
"""
