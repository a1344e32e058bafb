;;; pwr-mode.el --- rules and graphs of Piecewise -*- lexical-binding: t -*-

;; Put this folder into `load-path' and (require 'pwr-mode) into the init file.
;; Eglot, which Emacs has since version 29, runs `pwr lsp'; M-x eglot starts it.

;;; Code:

(require 'pwr-words)

(defvar pwr-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 12" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?_ "w" table)
    (modify-syntax-entry ?` "\"" table)
    table))

(defvar pwr-font-lock-keywords
  `((,(concat "\\_<" (regexp-opt pwr-dtypes) "\\_>") . font-lock-type-face)
    (,(concat "\\_<" (regexp-opt pwr-reserved-words) "\\_>") . font-lock-keyword-face)
    ;; The other words of the language are names as well: what follows tells.
    (,(concat "\\_<\\(" (regexp-opt pwr-contextual-words) "\\)\\_>[ \t]*\\(?:[A-Za-z0-9_\"{`]\\|$\\)")
     1 font-lock-builtin-face)
    ("\\_<\\([A-Za-z_][A-Za-z0-9_]*\\)\\??(" 1 font-lock-function-name-face)))

;;;###autoload
(define-derived-mode pwr-mode prog-mode "Piecewise"
  "Rules and graphs of Piecewise."
  (setq-local comment-start "// "
              comment-end ""
              indent-tabs-mode nil
              tab-width 2
              font-lock-defaults '(pwr-font-lock-keywords)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.pw[rg]\\'" . pwr-mode))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(pwr-mode . ("pwr" "lsp"))))

(provide 'pwr-mode)
;;; pwr-mode.el ends here
