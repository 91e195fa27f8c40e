"""The suite asks for a directory credential at import, and uses it only in its directory-login mode."""


class NoCredential:
    """Refuses to be used: Bolide is tested with the master key."""

    def get_token(self, *_scopes, **_options):
        raise NotImplementedError("the published suite runs with the master key only")


def get_credential(**_options):
    return NoCredential()
