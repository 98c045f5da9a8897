{{- define "kvplan.labels" -}}
app.kubernetes.io/part-of: kvplan
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* An image: (dict "image" values "root" $). */}}
{{- define "kvplan.image" -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* What restricted Pod Security asks of a pod. */}}
{{- define "kvplan.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* And of a container. */}}
{{- define "kvplan.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Where pods go: (dict "values" component "labels" matchLabels "root" $). */}}
{{- define "kvplan.placement" -}}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- toYaml .labels | nindent 6 }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* Rules of a role of manifests/, by its name there: (dict "role" name "root" $). */}}
{{- define "kvplan.rules" -}}
{{- $roles := .root.Files.Get "files/roles.yaml" | fromYaml -}}
rules: {{- toYaml (index $roles .role) | nindent 0 }}
{{- end }}

{{- define "kvplan.hashSecret" -}}
{{ .Values.hashSecret.existing | default (printf "%s-hash-secret" .Release.Name) }}
{{- end }}
