"""Stand-in for the helper package the published suite imports; its own is not part of the source distribution.

Only what the chosen test files touch is here: whether the account is live, and an unusable credential.
"""
