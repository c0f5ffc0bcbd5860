# Targets: operator, agent, keeper; neighbours is for the demonstration and tests alone.
# BASE is any Debian-based image with Python 3.11 or newer as `python3`; a tag moves, NAME@sha256:DIGEST does not.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS wheel
WORKDIR /src
COPY requirements/build.lock requirements/build.lock
RUN python3 -m venv /opt/build && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock
COPY pyproject.toml README.md ./
COPY operator operator
COPY agents agents
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM ${BASE} AS runtime
ENV PATH=/opt/kvpool/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN python3 -m venv /opt/kvpool

FROM runtime AS operator
COPY requirements/operator.lock /tmp/lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/lock
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps /tmp/wheels/*.whl
USER 65532:65532
ENTRYPOINT ["kvpool-operator"]

FROM runtime AS agent
COPY requirements/agent.lock /tmp/lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/lock
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps /tmp/wheels/*.whl
ENTRYPOINT ["kvpool-agent"]

FROM runtime AS keeper
# The Mooncake client needs these at run time.
RUN apt-get update && apt-get install --yes --no-install-recommends libcurl4 libibverbs1 libnuma1 \
 && rm -rf /var/lib/apt/lists/*
COPY requirements/keeper.lock /tmp/lock
RUN pip install --no-cache-dir --require-hashes -r /tmp/lock
COPY --from=wheel /wheels /tmp/wheels
RUN pip install --no-cache-dir --no-deps /tmp/wheels/*.whl
USER 65532:65532
ENTRYPOINT ["kvpool-keeper"]

# Mock engines, the Mooncake master, the simulated device plugin, and Traefik from the build context.
FROM keeper AS neighbours
USER 0:0
COPY build/images/traefik /usr/local/bin/traefik
COPY demo/__init__.py /opt/neighbours/demo/
COPY demo/neighbours /opt/neighbours/demo/neighbours
ENV PYTHONPATH=/opt/neighbours
USER 65532:65532
ENTRYPOINT []
