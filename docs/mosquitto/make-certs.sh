#!/bin/sh
# Makes the certificates of a fleet: one authority, the broker's with all its names and addresses, one for each node (CN = node name) and each
# person or program. Run it again with more names, or the same ones: what is there and good stays as it is. Asks nothing.
#
#   make-certs.sh DIR --server broker.example,192.0.2.10 --node pi-01 --node pi-02 --operator ops-1
#   make-certs.sh DIR --revoke pi-02        # lost or stolen: crl.pem, to be copied to the broker, which is then reloaded
#   make-certs.sh DIR --renew pi-01         # another certificate for the same key
#   --days N                                # how long new certificates are good, default 3650
#
# In DIR: ca.crt, crl.pem, server.crt/.key, NAME.crt/.key. The authority's key (ca.key) and its books (ca.db) belong on no node and no broker.
# Keys are readable by their owner only (0600). Certificates begin in 2020: a Pi without a clock may think it is some years ago.
set -eu
umask 077
export LC_ALL=C

fail() {
  echo "make-certs.sh: $1" >&2
  exit 2
}

[ $# -ge 1 ] || fail 'usage: make-certs.sh DIR [--server NAME,ADDRESS,…] [--node NAME]… [--operator NAME]… [--renew NAME]… [--revoke NAME]… [--days N]'
command -v openssl >/dev/null || fail 'openssl is not installed'
dir=$1
shift
case $dir in -*) fail "a directory first, not $dir" ;; esac

# all mistakes before the first file
days=3650 server='' clients='' renewed='' revoked=''
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] && [ -n "$2" ] || fail "$1 needs a value"
  case $1 in
    --server)
      # names and IP addresses only: nothing of it may be read as configuration of openssl
      case $2 in *[!A-Za-z0-9.:,-]*) fail "not a list of names and addresses: $2" ;; esac
      server=$2
      ;;
    --node | --operator | --renew | --revoke)
      case $2 in -* | *- | *[!a-z0-9-]*) fail "not a name of small letters, digits and -: $2" ;; esac
      [ ${#2} -le 63 ] || fail "longer than 63 characters: $2"
      case $2 in ca | crl) fail "$2 is taken by the authority itself" ;; esac
      case $1 in
        --renew) renewed="$renewed $2" ;;
        --revoke) revoked="$revoked $2" ;;
        *)
          [ "$2" != server ] || fail 'server is the name of the broker’s own certificate'
          clients="$clients $2"
          ;;
      esac
      ;;
    --days)
      case $2 in *[!0-9]* | 0*) fail "not a number of days: $2" ;; esac
      days=$2
      ;;
    *) fail "unknown option $1" ;;
  esac
  shift 2
done

mkdir -p "$dir/ca.db/issued"
cd "$dir"
db=ca.db
[ -e $db/index.txt ] || : >$db/index.txt
[ -e $db/crlnumber ] || echo 01 >$db/crlnumber
cat >$db/ca.cnf <<'CONF'
[ca]
default_ca = fleet
[fleet]
database = ca.db/index.txt
new_certs_dir = ca.db/issued
crlnumber = ca.db/crlnumber
certificate = ca.crt
private_key = ca.key
default_md = sha256
rand_serial = yes
unique_subject = no
policy = by_name
email_in_dn = no
[by_name]
commonName = supplied
[req]
distinguished_name = none
[none]
CONF

begin=20200101000000Z
end=$(date -u -d "+$days days" +%Y%m%d%H%M%SZ 2>/dev/null) || fail "no such date: in $days days"
# in 2050 the form of dates changes
[ "${#end}" -eq 15 ] && [ "${end%??????????Z}" -lt 2050 ] || end=20491231235959Z

quietly() { # what openssl says is worth reading only when it failed
  "$@" >$db/last.log 2>&1 || {
    cat $db/last.log >&2
    exit 1
  }
}
# a whole file or none: a run that is broken off leaves no half a key
new_key() { quietly openssl ecparam -name prime256v1 -genkey -noout -out "$1.new" && mv "$1.new" "$1"; }

# sign NAME CN EXTENSIONS: a request with the key of NAME, and its certificate
sign() {
  name=$1 cn=$2
  printf '%s\n' "$3" >$db/extensions
  quietly openssl req -new -config $db/ca.cnf -key "$name.key" -subj "/CN=$cn" -out $db/request
  quietly openssl ca -batch -notext -config $db/ca.cnf -extfile $db/extensions -startdate $begin -enddate "$end" \
    -in $db/request -out "$name.crt.new"
  chmod 644 "$name.crt.new"
  mv "$name.crt.new" "$name.crt"
  rm -f $db/request $db/extensions $db/last.log
  echo "made $name.crt"
}

# good NAME: there, of this authority and this key, for a month to come, not revoked
good() {
  [ -s "$1.key" ] && [ -s "$1.crt" ] &&
    openssl verify -CAfile ca.crt -CRLfile crl.pem -crl_check "$1.crt" >/dev/null 2>&1 &&
    openssl x509 -in "$1.crt" -noout -checkend 2592000 >/dev/null 2>&1 &&
    [ "$(openssl x509 -in "$1.crt" -noout -pubkey)" = "$(openssl pkey -in "$1.key" -pubout 2>/dev/null)" ]
}

write_crl() {
  quietly openssl ca -config $db/ca.cnf -gencrl -crldays 3650 -out crl.pem.new
  chmod 644 crl.pem.new
  mv crl.pem.new crl.pem
}

client_extensions='basicConstraints = CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth'

[ -s ca.key ] || new_key ca.key
if [ ! -s ca.crt ]; then
  printf '%s\n' 'basicConstraints = critical, CA:TRUE, pathlen:0' 'keyUsage = critical, keyCertSign, cRLSign' \
    'subjectKeyIdentifier = hash' >$db/extensions
  quietly openssl req -new -config $db/ca.cnf -key ca.key -subj '/CN=podsched fleet' -out $db/request
  quietly openssl ca -batch -notext -selfsign -config $db/ca.cnf -extfile $db/extensions -startdate $begin -enddate 20491231235959Z \
    -in $db/request -out ca.crt.new
  chmod 644 ca.crt.new
  mv ca.crt.new ca.crt
  rm -f $db/request $db/extensions $db/last.log
  echo 'made ca.crt'
fi
[ -s crl.pem ] || write_crl

if [ -n "$server" ]; then
  names=''
  for name in $(echo "$server" | tr ',' ' '); do
    case $name in
      *:*) kind=IP ;;
      *[!0-9.]*) kind=DNS ;;
      *) kind=IP ;;
    esac
    names="${names:+$names,}$kind:$name"
  done
  # other names are another certificate
  if ! good server || [ "$(cat $db/server.names 2>/dev/null)" != "$names" ]; then
    [ -s server.key ] || new_key server.key
    sign server "${server%%,*}" "basicConstraints = CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = $names"
    echo "$names" >$db/server.names
  fi
fi

for name in $clients; do
  if ! good "$name"; then
    [ -s "$name.key" ] || new_key "$name.key"
    sign "$name" "$name" "$client_extensions"
  fi
done

for name in $renewed; do
  [ -s "$name.key" ] || fail "there is no $name to be renewed"
  [ "$name" != server ] || fail 'the broker’s certificate: --server with its names, after taking server.crt away'
  sign "$name" "$name" "$client_extensions"
done

for name in $revoked; do
  [ -s "$name.crt" ] || fail "there is no $name to be revoked"
  # every certificate of that name, earlier ones too
  for issued in $db/issued/*.pem; do
    [ "$(openssl x509 -in "$issued" -noout -subject -nameopt RFC2253)" = "subject=CN=$name" ] || continue
    openssl ca -batch -config $db/ca.cnf -revoke "$issued" >/dev/null 2>&1 || true # revoked before
  done
  # a name that comes again gets another key
  rm -f "$name.key" "$name.crt"
  echo "revoked $name"
done
[ -z "$revoked" ] || write_crl
