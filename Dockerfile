# An embedding server without torch: docker build -t st_paragram . && docker run -p 8080:8080 st_paragram
# With your model: docker run -p 8080:8080 -v "$PWD/p-sp-es:/model:ro" st_paragram /model --name p-sp-es
# With an index: docker build --build-arg EXTRAS=serve,search -t st_paragram . \
#     && docker run -p 8080:8080 -v "$PWD/lines.index:/index:ro" st_paragram p-sp-mini --index /index
FROM python:3.11-slim AS build
# Extras of setup.cfg, separated by commas.
ARG EXTRAS=serve
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
# Install the packages of the extras by name: `pip install ".[serve]"` would install torch.
RUN ST_PARAGRAM_REQUIRE_KERNELS=1 pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && cp requirements-light.txt /wheels \
    && python -c "import configparser, os; c = configparser.ConfigParser(); c.read('setup.cfg'); print(*(c['options.extras_require'][name] for name in os.environ['EXTRAS'].split(',')))" \
        > /wheels/requirements-extras.txt

FROM python:3.11-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir -r /wheels/requirements-light.txt -r /wheels/requirements-extras.txt \
    && pip install --no-cache-dir --no-deps /wheels/*.whl \
    && useradd --create-home --uid 10001 server
USER server
WORKDIR /home/server
ENV HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK --interval=30s --start-period=30s --timeout=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["st-paragram", "serve", "--host", "0.0.0.0", "--port", "8080"]
CMD ["p-sp-mini"]
