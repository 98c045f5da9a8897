# A real control plane (e2e/README.md). Included by the Makefile, which sets BIN and has the target `setup`.
.PHONY: controlplane cluster e2e

controlplane: setup ## Build Kubernetes, etcd and kwok once (minutes; found again in .cache afterwards)
	@$(BIN)/python -m e2e.harness.build

cluster: controlplane ## A real control plane with 3 nodes of 8 GPUs to try; Ctrl-C removes it
	@exec $(BIN)/python -m e2e.harness.bed $(CLUSTER_FLAGS)

e2e: controlplane ## The tests on the real control plane
	@$(BIN)/pytest -m "not slow" e2e/tests e2e/crds e2e/contract
