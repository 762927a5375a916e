#!/bin/sh
# manifests/schema.json accepts the manifests that the library accepts: those of the tree and
# tests/fixtures/manifest_cases.json, which tests/test_manifest.c takes, too.
. "$top_srcdir/tests/tap.sh"

python3 -c 'import jsonschema' 2>/dev/null || { echo '1..0 # SKIP python3-jsonschema is missing'; exit 0; }

check() { # CASES|FILE...
    python3 - "$top_srcdir/manifests/schema.json" "$@" <<'END'
import json, sys, jsonschema

schema = json.load(open(sys.argv[1]))
validator = jsonschema.Draft7Validator(schema)
wrong = 0

def judge(name, manifest, expected):
    global wrong
    errors = list(validator.iter_errors(manifest))
    if bool(errors) == expected:
        wrong += 1
        print(name, "should be", "right" if expected else "wrong", *(e.message[:200] for e in errors))

jsonschema.Draft7Validator.check_schema(schema)
for path in sys.argv[2:]:
    file = json.load(open(path))
    if "cases" not in file:
        judge(path, file, True)
        continue
    for case in file["cases"]:
        manifest = {k: v for k, v in {**file["base"], **case.get("set", {})}.items() if k not in case.get("drop", [])}
        judge(case["why"], manifest, "says" not in case or case.get("form", False))
sys.exit(wrong != 0)
END
}

ok 'the schema agrees with the library on every case' check "$top_srcdir/tests/fixtures/manifest_cases.json"
ok 'it accepts the manifests of this tree' \
    check "$top_builddir"/manifests/*.json "$top_builddir"/manifests/installed/*.json
tap_end
