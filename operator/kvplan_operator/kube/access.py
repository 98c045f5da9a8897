"""How to reach the API server, and as whom.

Inputs: a kubeconfig, or what kubelet mounts into a pod. Outputs: the client library's Configuration. A pod's token is
read from its file for every request, because kubelet replaces it; that of a kubeconfig by loading the file again.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext

from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import (
    SERVICE_CERT_FILENAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)

from kvplan_operator.kube.errors import Refused

_BEARER = "BearerToken"
SERVICE_ACCOUNT = Path(SERVICE_TOKEN_FILENAME).parent


@dataclass(frozen=True)
class Access:
    """Where credentials come from.

    Attributes:
        kubeconfig: file, or several as in ``$KUBECONFIG``; None for a pod's service account.
        context: of the kubeconfig; None for its current one.
        account: directory with ``token`` and ``ca.crt`` of a service account.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    account: Path = SERVICE_ACCOUNT

    async def load(self) -> Configuration:
        """Read credentials; asks nothing of the API server.

        Raises:
            Refused: when there are none.
        """
        configuration = Configuration()
        with self._named():
            if self.kubeconfig is None:
                self._load_account(configuration)
            else:
                await self._load_kubeconfig(self.kubeconfig, configuration)
        return configuration

    def tls(self, configuration: Configuration) -> SSLContext:
        """Whom to trust, and the client's certificate, if any.

        Raises:
            Refused: when a certificate cannot be read.
        """
        with self._named():
            context: SSLContext = RESTClientObject(configuration).ssl_context
        return context

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the source of the credentials in errors about them."""
        try:
            yield
        except (ConfigException, OSError) as error:
            source = self.kubeconfig or f"the service account in {self.account}"
            raise Refused(f"no access to the API server by {source}: {error}") from error

    async def _load_kubeconfig(self, file: Path, configuration: Configuration) -> None:
        for part in str(file).split(os.pathsep):
            Path(part).read_bytes()  # the library takes a file that is not there for an empty one
        await load_kube_config(  # type: ignore[no-untyped-call]
            str(file), self.context, configuration, persist_config=False
        )

    def _load_account(self, configuration: Configuration) -> None:
        token, authority = (self.account / Path(name).name for name in (SERVICE_TOKEN_FILENAME, SERVICE_CERT_FILENAME))
        # The library's own refresh goes by the wall clock, which people and NTP set.
        InClusterConfigLoader(str(token), str(authority), try_refresh_token=False).load_and_set(  # type: ignore[no-untyped-call]
            configuration
        )

        def read_token(fresh: Configuration) -> None:
            fresh.api_key[_BEARER] = f"Bearer {token.read_text().strip()}"

        configuration.refresh_api_key_hook = read_token  # type: ignore[assignment]


async def authorization(configuration: Configuration) -> dict[str, str]:
    """Headers that say who asks; none where a client certificate does."""
    token = await configuration.get_api_key_with_prefix(_BEARER)
    return {"Authorization": token} if token else {}
