-- Rules and graphs of Piecewise in Neovim 0.10 or later: require this file from init.lua.
-- Colours are semantic tokens of the server.
vim.filetype.add({ extension = { pwr = "pwr", pwg = "pwr" } })

if not (vim.lsp.start and vim.fs and vim.fs.root and vim.lsp.inlay_hint) then
  vim.notify("pwr.lua: the language server needs Neovim 0.10 or later", vim.log.levels.WARN)
  return
end

vim.api.nvim_create_autocmd("FileType", {
  pattern = "pwr",
  callback = function(event)
    vim.bo[event.buf].commentstring = "// %s"
    vim.lsp.start({
      name = "piecewise",
      cmd = { "pwr", "lsp" },
      root_dir = vim.fs.root(event.buf, { "piecewise.toml", ".git" }) or vim.fn.getcwd(),
      -- A graph in which the matches of each rule are counted; without it, one beside the rules.
      init_options = { graph = vim.g.piecewise_graph },
      commands = {
        ["piecewise.explain"] = function(command, context)
          vim.lsp.get_client_by_id(context.client_id).request("workspace/executeCommand", command, function(_, text)
            vim.lsp.util.open_floating_preview(vim.split(text or "", "\n"), "text")
          end)
        end,
      },
      on_attach = function(_, buffer)
        vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
        vim.api.nvim_create_autocmd({ "BufEnter", "InsertLeave" }, {
          buffer = buffer,
          callback = function()
            vim.lsp.codelens.refresh({ bufnr = buffer })
          end,
        })
      end,
    })
  end,
})
