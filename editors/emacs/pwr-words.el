;;; pwr-words.el --- the words of Piecewise rules, made by `pwr grammar emacs` -*- lexical-binding: t -*-

(defconst pwr-reserved-words
  '("where" "assume" "given" "unless" "many" "and" "or" "not"
    "in" "out" "true" "false" "none"))

(defconst pwr-contextual-words
  '("use" "param" "extern" "pred" "fn" "op" "table" "pattern"
    "rec" "rule" "for" "over" "group" "pass" "pipeline" "ranges"
    "split" "at" "capture" "sizes" "mode" "by" "test" "graph"
    "apply" "with" "expect" "numeric" "within" "error" "because" "mut"
    "from" "commutative" "associative" "view" "collective" "effect" "splitting" "rowwise"
    "greedy" "once" "walk" "saturate" "atomic" "repeat" "best" "of"
    "fuel" "when" "ensures" "nodes" "rounds" "cost" "symbol" "tokens"
    "role" "weight" "buffer" "replicated" "foreign" "write"))

(defconst pwr-dtypes
  '("b8" "i8" "i32" "i64" "u8" "f8e4m3" "f8e5m2" "f16"
    "bf16" "f32" "f64"))

(provide 'pwr-words)
;;; pwr-words.el ends here
