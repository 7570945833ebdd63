# Sourced by documents about clusters of machines, in comments (CONTRIBUTING.md). This machine stands for all of them: 127.N.x.y for
# 10.0.x.y, folders of the document for /etc/kith, /var/lib/kith and /mnt/kith. Certificates are made and an etcd is started. `kith node`,
# `kith router` and `kith database`, which serve until they are stopped, go to the background.
network="127.$((RANDOM % 200 + 20))"
mkdir -p etc/kith mnt var
printf '%s\t%s\n' 10.0. "$network." /etc/kith "$PWD/etc/kith" /var/lib/kith "$PWD/var/kith" /mnt/kith "$PWD/mnt/kith" >stand-ins

new_key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
openssl req -x509 "${new_key[@]}" -days 2 -subj /CN=authority -keyout etc/kith/ca.key -out etc/kith/ca.pem
# certificate FILE SUBJECT
certificate() {
  openssl req "${new_key[@]}" -subj "$2" -keyout "etc/kith/$1.key" -out "etc/kith/$1.csr"
  openssl x509 -req -in "etc/kith/$1.csr" -CA etc/kith/ca.pem -CAkey etc/kith/ca.key -days 2 -out "etc/kith/$1.pem" -extfile <(
    echo "subjectAltName=IP:$network.0.1,IP:$network.0.2,IP:$network.0.3,IP:$network.1.10,IP:$network.1.11,IP:$network.1.20,IP:$network.1.30"
  )
}
certificate machine /CN=kith
certificate ada /CN=ada

# One member, at the addresses of three.
members="https://$network.0.1:2379,https://$network.0.2:2379,https://$network.0.3:2379"
peers="http://$network.0.1:2380"
etcd --data-dir var/etcd --log-level error --listen-client-urls "$members" --advertise-client-urls "$members" \
  --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers" \
  --cert-file etc/kith/machine.pem --key-file etc/kith/machine.key --trusted-ca-file etc/kith/ca.pem --client-cert-auth \
  >var/etcd.log 2>&1 &
etcd_does() {
  ETCDCTL_API=3 etcdctl --endpoints "https://$network.0.1:2379" --cacert etc/kith/ca.pem \
    --cert etc/kith/machine.pem --key etc/kith/machine.key "$@"
}
until etcd_does endpoint health; do sleep 0.1; done
(umask 077 && echo secret >etc/kith/password)
etcd_does user add root:secret
etcd_does user grant-role root root
etcd_does role add kith
etcd_does role grant-permission kith --prefix=true readwrite /kith/
etcd_does user add kith:secret
etcd_does user grant-role kith kith
etcd_does auth enable

# The last argument of the commands that serve is the id.
kith() {
  case "$1" in
  node | router | database)
    local data="$PWD/var/$1-${!#}"
    command kith "$@" --data "$data" >"$data.log" 2>&1 &
    ;;
  *) command kith "$@" ;;
  esac
}
# serves ADDRESS: waits until something listens there.
serves() { until (: <"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null; do sleep 0.1; done; }

# secured_cluster: a node and a router, as etc/kith/tls.toml and etc/kith/access.toml have it, with a store `profiles` and a store `pages`.
# The token of the subject `ads` is in `token`; its SHA-256 stands for SHA256-OF-THE-TOKEN.
certificate ops /CN=ops
certificate ads /O=Acme/CN=ads
(umask 077 && openssl rand -hex 32 | tr -d '\n' >token)
printf 'SHA256-OF-THE-TOKEN\t%s\n' "$(sha256sum token | cut -d' ' -f1)" >>stand-ins
secured_cluster() {
  {
    cat etc/kith/tls.toml
    printf '%s = "%s"\n' metadata "etcd://$network.0.1:2379" cluster social etcd-user kith etcd-password-file "$PWD/etc/kith/password" \
      etcd-ca "$PWD/etc/kith/ca.pem" etcd-cert "$PWD/etc/kith/machine.pem" etcd-key "$PWD/etc/kith/machine.key" object-store "$PWD/mnt/kith"
    printf '%s\n' groups=1 nodes=1 partitions=8 '[[node]]' node=0 "listen = \"$network.1.10:7100\"" \
      '[[router]]' id=0 "listen = \"$network.1.20:7100\"" "resp = \"$network.1.20:6379\""
  } >etc/kith.toml
  kith cluster create --config etc/kith.toml
  kith node --config etc/kith.toml --node 0
  kith router --config etc/kith.toml --id 0
  serves "$network.1.20:7100"
  local as_ops=(--router "$network.1.20:7100" --tls-ca etc/kith/ca.pem --tls-cert etc/kith/ops.pem --tls-key etc/kith/ops.key)
  for store in profiles pages; do
    printf '{"id":%s,"name":"Ada"}\n' 7 8 >rows.jsonl
    kith store create "$store" --key id --value json --key-field id "${as_ops[@]}"
    kith store push "$store" rows.jsonl "${as_ops[@]}"
  done
}
