{{- define "kvpool.labels" -}}
app.kubernetes.io/name: kvpool
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "kvpool.selector" -}}
app.kubernetes.io/name: kvpool
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "kvpool.image" -}}
{{ .root.Values.image.repository }}/{{ .name }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end }}

{{/* People's node selector, with Linux unless they name another system: neither image runs on Windows. */}}
{{- define "kvpool.nodeSelector" -}}
{{- toYaml (merge (dict) (. | default dict) (dict "kubernetes.io/os" "linux")) }}
{{- end }}

{{- define "kvpool.agents" -}}
kvpool-agents.{{ .Release.Namespace }}.svc
{{- end }}
