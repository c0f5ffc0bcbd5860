# syntax=docker/dockerfile:1
# Targets: operator, agent, keeper. BASE is any Debian-based image with Python 3.11 or newer as `python3`.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml requirements.lock README.md ./
COPY operator operator
COPY agents agents
RUN python3 -m venv /opt/kvpool
# One lock for all three: pip takes from it what each extra needs, by hash.
RUN /opt/kvpool/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock \
 && /opt/kvpool/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE} AS runtime
COPY --from=build /opt/kvpool /opt/kvpool
ENV PATH=/opt/kvpool/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

FROM runtime AS operator
USER 65532:65532
ENTRYPOINT ["kvpool-operator"]

FROM runtime AS agent
RUN apt-get update && apt-get install --yes --no-install-recommends mount util-linux && rm -rf /var/lib/apt/lists/*
ENTRYPOINT ["kvpool-agent"]

FROM runtime AS keeper
# The Mooncake client needs these at run time.
RUN apt-get update && apt-get install --yes --no-install-recommends libcurl4 libibverbs1 libnuma1 \
 && rm -rf /var/lib/apt/lists/*
USER 65532:65532
ENTRYPOINT ["kvpool-keeper"]
