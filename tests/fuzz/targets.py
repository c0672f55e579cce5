"""The targets by name: module of this folder, and the function in it that prepares their draws."""

TARGETS = {
    "exponents": "infer_exponents:sums",
    "labels": "infer_exponents:labels",
    "treebanks": "read_treebanks:treebanks",
    "texts": "parse_texts:texts",
    "rules": "read_rules:rules",
    "templates": "read_rules:templates",
    "clusters": "read_rules:clusters",
    "coreference": "read_coreference:documents",
    "settings": "settings:settings",
    "commands": "settings:commands",
    "certificates": "certificates:certificates",
    "models": "mutate_archives:models",
    "checkpoints": "mutate_archives:checkpoints",
    "networks": "mutate_networks:networks",
    "encoders": "mutate_encoders:encoders",
}
