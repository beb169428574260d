{{- define "longtake.labels" -}}
app.kubernetes.io/name: longtake
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "longtake.image" -}}
{{- $image := ternary .root.Values.gpuImage .root.Values.image (gt (int .gpu) 0) -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end }}

{{- define "longtake.env" -}}
- { name: LONGTAKE_KAFKA, value: {{ .Values.kafka.bootstrap | quote }} }
- { name: LONGTAKE_PARTITIONS, value: {{ .Values.kafka.partitions | quote }} }
- { name: LONGTAKE_REPLICATION, value: {{ .Values.kafka.replication | quote }} }
- { name: LONGTAKE_CLICKHOUSE, value: {{ .Values.clickhouse | quote }} }
- { name: LONGTAKE_OBJECTS, value: {{ .Values.objects | quote }} }
{{- range $name, $value := .Values.env }}
- { name: {{ $name }}, value: {{ $value | quote }} }
{{- end }}
{{- end }}

{{- define "longtake.kafkaUser" -}}
{{- if and .root.Values.strimzi.cluster .root.Values.strimzi.users -}}
- { name: LONGTAKE_KAFKA_USER, value: longtake-{{ .role }} }
- name: LONGTAKE_KAFKA_PASSWORD
  valueFrom: { secretKeyRef: { name: longtake-{{ .role }}, key: password } }
{{- end }}
{{- end }}

{{- define "longtake.envFrom" -}}
{{- range .Values.secrets }}
- secretRef: { name: {{ . }} }
{{- end }}
{{- end }}

{{- define "longtake.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "longtake.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}
