# halox and NVRTC, for hosts with a GPU driver and NVIDIA's container toolkit:
#
#   docker build -t halox .
#   docker run --rm --gpus all halox devices
#   docker run --rm --gpus all -v "$PWD:/work" halox run heat3d.yaml
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go build -o /halox ./cmd/halox

FROM python:3.13-slim-bookworm
RUN pip install --no-cache-dir nvidia-cuda-nvrtc==13.0.88
COPY --from=build /halox /usr/local/bin/halox
# compute: the CUDA driver. utility: NVML, which halox devices needs.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
ENTRYPOINT ["halox"]
