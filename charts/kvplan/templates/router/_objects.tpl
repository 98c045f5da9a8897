{{/* The objects of one router: (dict "router" settings "name" name "labels" matchLabels "root" $). */}}
{{- define "kvplan.router.metadata" -}}
metadata:
  name: {{ .name }}
  namespace: {{ .router.namespace }}
  labels:
    app.kubernetes.io/name: kvplan-router
    {{- include "kvplan.labels" .root | nindent 4 }}
{{- end }}

{{- define "kvplan.router.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
{{ include "kvplan.router.metadata" . }}
{{- end }}

{{- define "kvplan.router.rbac" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
{{ include "kvplan.router.metadata" . }}
{{ include "kvplan.rules" (dict "role" "kvplan-router" "root" .root) | replace "assistants-table" (printf "%s-table" .router.fleet) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
{{ include "kvplan.router.metadata" . }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }}}
subjects:
- {kind: ServiceAccount, name: {{ .name }}, namespace: {{ .router.namespace }}}
{{- end }}

{{- define "kvplan.router.envoy" -}}
apiVersion: v1
kind: ConfigMap
{{ include "kvplan.router.metadata" . }}
data:
  envoy.yaml: |
    {{- .root.Files.Get "files/envoy.yaml" | nindent 4 }}
{{- end }}

{{- define "kvplan.router.service" -}}
apiVersion: v1
kind: Service
{{ include "kvplan.router.metadata" . }}
  {{- with .router.service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if ne .router.service.type "ClusterIP" }}
  type: {{ .router.service.type }}
  {{- end }}
  selector: {{- toYaml .labels | nindent 4 }}
  ports:
  - {name: http, port: {{ .router.service.port }}, targetPort: http}
{{- end }}

{{- define "kvplan.router.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "kvplan.router.metadata" . }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- toYaml .labels | nindent 6 }}
{{- end }}

{{- define "kvplan.router.networkPolicy" -}}
{{- $peers := list (dict "podSelector" (dict "matchLabels" .labels)) -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "kvplan.router.metadata" . }}
spec:
  podSelector:
    matchLabels: {{- toYaml .labels | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
  - ports:
    - {port: 8080, protocol: TCP}
    - {port: 9090, protocol: TCP}
  - from: {{- toYaml $peers | nindent 4 }}
    ports:
    - {port: 9004, protocol: UDP}
  egress:
  - ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
  - ports:
    - {port: 443, protocol: TCP}
    - {port: 6443, protocol: TCP}
    - {port: 8000, protocol: TCP}
  - to: {{- toYaml $peers | nindent 4 }}
    ports:
    - {port: 9004, protocol: UDP}
{{- end }}
