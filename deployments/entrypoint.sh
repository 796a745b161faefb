#!/bin/sh
# Runs a command with its secrets. Each file NAME in the folders of secrets becomes the variable NAME of that command alone:
# Prefect reads no files of secrets, and what stands in a container's settings can be read by whoever may inspect it.
# Folders: /run/secrets (Compose and Kubernetes) and CREDENTIALS_DIRECTORY (LoadCredential= of systemd).
# In a container it also copies the file of alerts to where it is closed to others, and the compiled kernels to where
# numba may write, as the rest of the image is read-only.
set -eu

for folder in /run/secrets "${CREDENTIALS_DIRECTORY:-/run/secrets}"; do
    for file in "$folder"/*; do
        name=${file##*/}
        case "$name" in
            *[!A-Z0-9_]*) continue ;; # a key or certificate, whose path is a setting
            EVENHAND_* | PREFECT_* | AWS_* | AZURE_* | GOOGLE_* | OTEL_EXPORTER_OTLP_HEADERS) ;;
            *) continue ;; # nothing else is ours to set, PATH least of all
        esac
        value=$(cat "$file") || value=
        if [ -z "$value" ]; then
            echo "the secret $file is empty, or user $(id -u) cannot read it: mend the file, then start again" >&2
            exit 5
        fi
        export "$name=$value"
    done
done

# Alerts are refused if others can read their file, and Kubernetes gives a secret's file to root and a group.
case "${EVENHAND_ALERTS:-}" in
    */secrets/*)
        if [ -f "$EVENHAND_ALERTS" ]; then
            copy=${TMPDIR:-/tmp}/alerts.yaml
            (umask 077 && cp "$EVENHAND_ALERTS" "$copy.$$" && mv "$copy.$$" "$copy")
            export EVENHAND_ALERTS="$copy"
        else
            echo "nobody is told of endings: there is no $EVENHAND_ALERTS" >&2
            unset EVENHAND_ALERTS
        fi
        ;;
esac

kernels=${EVENHAND_KERNELS:-}
if [ -d "$kernels" ] && [ ! -e "${NUMBA_CACHE_DIR:=/tmp/kernels}" ]; then
    cp -Rp "$kernels" "$NUMBA_CACHE_DIR.$$" && mv "$NUMBA_CACHE_DIR.$$" "$NUMBA_CACHE_DIR"
fi

exec "$@"
