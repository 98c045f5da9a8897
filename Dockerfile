# Images of kvplan: `docker build --target operator .` and `docker build --target router .`
# The router with its native transport: add `--build-arg NATIVE=yes` (compiles Rust for some minutes).
# Everything installed is pinned by hash in requirements/; e2e/install/test_clean_root.py runs the same steps without docker.
ARG PYTHON_IMAGE=python:3.11-slim-trixie
ARG RUST_IMAGE=rust:1.88-slim-trixie
ARG NATIVE=no

FROM ${PYTHON_IMAGE} AS base
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

FROM base AS wheel
WORKDIR /src
COPY requirements/build.txt requirements/build.txt
RUN pip install --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY operator operator
COPY solver solver
COPY router router
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM wheel AS native-no
RUN mkdir /native

FROM ${RUST_IMAGE} AS rust

FROM wheel AS native-yes
COPY --from=rust /usr/local/cargo /usr/local/cargo
COPY --from=rust /usr/local/rustup /usr/local/rustup
ENV PATH=/usr/local/cargo/bin:${PATH} RUSTUP_HOME=/usr/local/rustup CARGO_HOME=/usr/local/cargo
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --no-install-recommends --yes gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
RUN maturin build --release --locked --manifest-path router/native/Cargo.toml --out /native

# hadolint ignore=DL3006
FROM native-${NATIVE} AS native

FROM base AS operator-packages
RUN python -m venv /opt/kvplan
COPY requirements/operator.txt /tmp/operator.txt
RUN /opt/kvplan/bin/pip install --require-hashes --requirement /tmp/operator.txt
COPY --from=wheel /wheels /wheels
RUN /opt/kvplan/bin/pip install --no-deps --no-index /wheels/*.whl

FROM base AS router-packages
RUN python -m venv /opt/kvplan
COPY requirements/router.txt /tmp/router.txt
RUN /opt/kvplan/bin/pip install --require-hashes --requirement /tmp/router.txt
COPY --from=wheel /wheels /wheels
COPY --from=native /native /wheels
RUN /opt/kvplan/bin/pip install --no-deps --no-index /wheels/*.whl

FROM base AS runtime
ENV PATH=/opt/kvplan/bin:${PATH} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
USER 65532:65532
WORKDIR /tmp

FROM runtime AS router
COPY --from=router-packages /opt/kvplan /opt/kvplan
EXPOSE 9002 9003 9004/udp 9090
ENTRYPOINT ["kvplan-router"]

FROM runtime AS operator
COPY --from=operator-packages /opt/kvplan /opt/kvplan
EXPOSE 8080
ENTRYPOINT ["kvplan-operator"]
