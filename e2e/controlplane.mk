# A real control plane (e2e/README.md). Included by the Makefile, which sets BIN and has the target `setup`.
.PHONY: controlplane gitops-tools cluster tour e2e e2e-smoke e2e-slow e2e-gitops e2e-vllm scale replan

E2E := e2e/tests e2e/crds e2e/contract e2e/operator e2e/router e2e/install e2e/loop

controlplane: setup ## Build Kubernetes, etcd, kwok and Prometheus once (minutes; found again in .cache afterwards)
	@$(BIN)/python -m e2e.harness.build
	@$(BIN)/python -m e2e.harness.prometheus_binary

gitops-tools: setup ## Build Flux's source- and kustomize-controller and helm once (the slow tier needs them)
	@$(BIN)/python -m e2e.harness.build source-controller kustomize-controller helm

cluster: controlplane ## A real control plane with 3 nodes of 8 GPUs to try; Ctrl-C removes it
	@exec $(BIN)/python -m e2e.harness.bed $(CLUSTER_FLAGS)

tour: controlplane ## A world to try things in, kept until Ctrl-C; docs/tour.md walks through it
	@exec $(BIN)/python -m e2e.loop.tour

e2e: controlplane ## The tests on the real control plane
	@$(BIN)/pytest -m "not slow" $(E2E)

e2e-smoke: controlplane ## A few of them, which stand for the others
	@$(BIN)/pytest -m smoke $(E2E)

e2e-slow: controlplane gitops-tools ## Those that take minutes each: rest, scale, re-partition under fire, Flux, helm
	@$(BIN)/pytest -m slow $(E2E) e2e/gitops

replan: controlplane ## How soon a new plan follows changed rates; prints figures
	@$(BIN)/python -m e2e.operator.replan $(REPLAN_FLAGS)

scale: controlplane ## What 200 fleets and 2,000 pods cost the operator; prints figures
	@$(BIN)/python -m e2e.operator.scale $(SCALE_FLAGS)

e2e-gitops: controlplane gitops-tools ## A fleet in git, kept by real Flux
	@$(BIN)/pytest -m "not slow" e2e/gitops

e2e-vllm: controlplane ## The tests on the real vLLM on a CPU (installs 6 GB once)
	@$(BIN)/pytest e2e/vllm
