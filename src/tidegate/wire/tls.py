"""How a TLS connection to an engine is checked."""

from __future__ import annotations

import ssl

from tidegate.errors import ConfigError


class Tls:
    """A ready TLS context and the name that the certificate must carry.

    Built once per endpoint: loading the system's authorities costs some 10 ms.
    """

    __slots__ = ("context", "server_name")

    def __init__(self, ca_file: str | None = None, server_name: str | None = None) -> None:
        """``ca_file``: PEM file of authorities; None means the system's. ``server_name``: SNI and
        certificate name when it differs from the host in the URL.

        Raises:
            ConfigError: the file can't be read or holds no certificate.
        """
        try:
            self.context = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError([f"ca_file {ca_file}: {error}; give a readable PEM file of authorities"]) from error
        self.context.set_alpn_protocols(["http/1.1"])
        self.server_name = server_name
