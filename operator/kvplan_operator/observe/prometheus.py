"""Instant queries to one Prometheus, in threads beside the event loop.

Inputs: a ``PrometheusConnection`` and PromQL text. Outputs: an ``Answer``, or an ``Unanswered`` with the reason; never
an exception for what a server does. The client is prometheus-api-client over a ``BoundedSession``. At most
``concurrency`` queries run at once; the others wait in line and give up with the caller.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Final

from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests.exceptions import ConnectionError as Disconnected
from requests.exceptions import InvalidJSONError, RequestException, SSLError, Timeout
from urllib3 import Retry
from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.exceptions import TimeoutError as SlowRead

from kvplan_operator.model.series import Answer, Reply, Unanswered, series_from_rows
from kvplan_operator.observe.profile import PrometheusConnection
from kvplan_operator.observe.session import BoundedSession, QueryFailed, TokenFile
from kvplan_solver.errors import InvalidInput

CONCURRENCY: Final = 8
"""Queries at once."""


class ConnectionLost(QueryFailed):
    """The connection broke before the whole answer was there."""


class Prometheus:
    """One connection; ``close`` when it is no longer needed.

    Attributes:
        name: for messages and sources.
    """

    def __init__(self, name: str, connection: PrometheusConnection, concurrency: int = CONCURRENCY) -> None:
        """Nothing is asked before ``query``.

        Args:
            name: for messages and sources.
            connection: how it is reached and within which bounds.
            concurrency: queries at once.
        """
        self.name, self._settings = name, connection
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix=f"prometheus-{name}")
        self._idle: SimpleQueue[_Connection] = SimpleQueue()

    async def query(self, text: str) -> Reply:
        """The answer to one instant query, evaluated now by the server's clock."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, text)
        except QueryFailed as failed:
            return Unanswered(f"Prometheus {self.name}: {failed}")

    async def query_all(self, queries: Mapping[str, str], seconds: float) -> dict[str, Reply]:
        """The answers to many queries by their keys; what is not there after some seconds is unanswered."""
        tasks = {key: asyncio.create_task(self.query(text)) for key, text in queries.items()}
        if not tasks:
            return {}
        try:
            await asyncio.wait(tasks.values(), timeout=seconds)
            late = Unanswered(f"Prometheus {self.name}: no answer within {seconds:g} s")
            return {key: task.result() if task.done() else late for key, task in tasks.items()}
        finally:
            for task in tasks.values():
                task.cancel()

    def close(self) -> None:
        """Drop the queries that wait and close what is idle; a query under way ends by its timeout."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while (connection := self._take()) is not None:
            connection.close()

    def _ask(self, text: str) -> Answer:
        """One query on a connection of its own: a session is not made for several threads."""
        idle = self._take()
        if idle is not None:
            try:
                return self._used(idle, text)
            except ConnectionLost:
                pass  # servers close idle connections when they like
        return self._used(_Connection(self._settings), text)

    def _used(self, connection: "_Connection", text: str) -> Answer:
        try:
            answer = connection.query(text)
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        return answer

    def _take(self) -> "_Connection | None":
        try:
            return self._idle.get_nowait()
        except Empty:
            return None


class _Connection:
    """A session with the client on it."""

    def __init__(self, settings: PrometheusConnection) -> None:
        self._settings, self._session = settings, BoundedSession(settings)
        self._client = PrometheusConnect(
            url=settings.base,
            session=self._session,
            # The next look comes soon; a retry in between would only load a server that is struggling.
            retry=Retry(total=0, redirect=None, read=False),
            auth=None if settings.token_file is None else TokenFile(settings.token_file),
        )

    def query(self, text: str) -> Answer:
        """Ask and check.

        Raises:
            QueryFailed: no usable answer.
        """
        most = self._settings.max_series
        bounds = {"timeout": f"{self._settings.timeout_seconds:g}s", "limit": most + 1}
        try:
            series = series_from_rows(self._client.custom_query(text, params=bounds))
        except (Timeout, SlowRead) as error:
            raise QueryFailed("no answer in time") from error
        except SSLError as error:
            raise QueryFailed("its certificate is not trusted; check ca_file") from error
        except (Disconnected, ProtocolError) as error:
            raise ConnectionLost(f"the connection failed ({type(error).__name__})") from error
        except (RequestException, HTTPError, PrometheusApiClientException, InvalidInput) as error:
            raise QueryFailed(_words(error)) from error
        except (KeyError, TypeError) as error:
            raise QueryFailed("the answer is not that of a Prometheus") from error
        if len(series) > most:
            raise QueryFailed(f"more than {most} series")
        return Answer(series, self._session.warnings)

    def close(self) -> None:
        """Close the session."""
        with closing(self._session):
            pass


def _words(error: Exception) -> str:
    """What went wrong, without addresses that change from query to query: conditions compare these words."""
    match error:
        case InvalidJSONError():
            return "the answer is no JSON"
        case InvalidInput():
            return str(error)
        case _:
            return f"the answer cannot be read ({type(error).__name__})"
