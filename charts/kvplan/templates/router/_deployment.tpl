{{- define "kvplan.router.deployment" -}}
apiVersion: apps/v1
kind: Deployment
{{ include "kvplan.router.metadata" . }}
spec:
  replicas: {{ .router.replicas }}
  selector:
    matchLabels: {{- toYaml .labels | nindent 6 }}
  strategy:
    # Every router owns a share of the engines' memory: a new one gets its share before an old one goes.
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels: {{- toYaml .labels | nindent 8 }}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "9090"
        checksum/envoy: {{ .root.Files.Get "files/envoy.yaml" | sha256sum }}
    spec:
      serviceAccountName: {{ .name }}
      # Longer than the drain: answers that are open when the pod is told to go run to their end.
      terminationGracePeriodSeconds: {{ add .router.drainSeconds 30 }}
      securityContext: {{- include "kvplan.podSecurity" .root | nindent 8 }}
      {{- include "kvplan.placement" (dict "values" .router "labels" .labels "root" .root) | nindent 6 }}
      containers:
      - {{- include "kvplan.router.container" . | nindent 8 }}
      - {{- include "kvplan.router.envoyContainer" . | nindent 8 }}
      volumes:
      - name: secret
        secret: {secretName: {{ include "kvplan.hashSecret" .root }}}
      - name: envoy
        configMap: {name: {{ .name }}}
      - name: run
        emptyDir: {sizeLimit: 16Mi}
      - name: tmp
        emptyDir: {sizeLimit: 64Mi}
{{- end }}

{{- define "kvplan.router.container" -}}
name: router
image: {{ include "kvplan.image" (dict "image" .router.image "root" .root) }}
imagePullPolicy: {{ .router.image.pullPolicy }}
env:
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
- {name: FLEET, valueFrom: {fieldRef: {fieldPath: "metadata.labels['kvplan.dev/fleet']"}}}
- {name: KVPLAN_ROUTER_FLEET, value: $(POD_NAMESPACE)/$(FLEET)}
# An identity that is an address tells the other routers where to send their counters.
- {name: KVPLAN_ROUTER_IDENTITY, value: "$(POD_IP):9004"}
- {name: KVPLAN_ROUTER_EXCHANGE, value: "0.0.0.0:9004"}
# Envoy alone asks, from within the pod.
- {name: KVPLAN_ROUTER_LISTEN, value: "127.0.0.1:9002"}
- {name: KVPLAN_ROUTER_INSECURE, value: "yes"}
- {name: KVPLAN_ROUTER_HEALTH, value: ""}
- {name: KVPLAN_ROUTER_ADMIN, value: "0.0.0.0:9090"}
- {name: KVPLAN_ROUTER_SECRET_FILE, value: /etc/kvplan/secret/hash-secret}
- {name: KVPLAN_ROUTER_ENDPOINTS_FILE, value: /run/kvplan/endpoints.json}
{{- with .router.extraEnv }}
{{ toYaml . }}
{{- end }}
ports:
- {name: metrics, containerPort: 9090}
- {name: exchange, containerPort: 9004, protocol: UDP}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 1
  failureThreshold: 60
# A router that hangs is restarted at once: the drain below is for pods that are told to go.
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  failureThreshold: 6
  terminationGracePeriodSeconds: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 2
lifecycle:
  preStop:
    exec:
      command:
      - python
      - -m
      - kvplan_router.envoy.drain
      - --limit-seconds={{ .router.drainSeconds }}
      - --done-file=/run/kvplan/drained
resources: {{- toYaml .router.resources | nindent 2 }}
securityContext: {{- include "kvplan.containerSecurity" .root | nindent 2 }}
volumeMounts:
- {name: secret, mountPath: /etc/kvplan/secret, readOnly: true}
- {name: run, mountPath: /run/kvplan}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "kvplan.router.envoyContainer" -}}
name: envoy
image: {{ include "kvplan.image" (dict "image" .router.envoyImage "root" .root) }}
imagePullPolicy: {{ .router.envoyImage.pullPolicy }}
# Envoy does not start without the endpoints file, which the router writes when it starts.
command: [sh, -c]
args:
- >-
  until [ -e /run/kvplan/endpoints.json ]; do sleep 0.1; done;
  exec envoy -c /etc/envoy/envoy.yaml --concurrency {{ .router.envoyConcurrency }} --disable-hot-restart -l warning
ports:
- {name: http, containerPort: 8080}
readinessProbe:
  tcpSocket: {port: http}
  periodSeconds: 2
lifecycle:
  preStop:
    exec:
      command: [sh, -c, "until [ -e /run/kvplan/drained ]; do sleep 0.2; done"]
resources: {{- toYaml .router.envoyResources | nindent 2 }}
securityContext: {{- include "kvplan.containerSecurity" .root | nindent 2 }}
volumeMounts:
- {name: envoy, mountPath: /etc/envoy, readOnly: true}
- {name: run, mountPath: /run/kvplan}
{{- end }}
