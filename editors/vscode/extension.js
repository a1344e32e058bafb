// Starts `pwr lsp` for rules and graphs, and shows the result of a code lens.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function explain(uri, rule) {
  const text = await client.sendRequest("workspace/executeCommand", {
    command: "piecewise.explain",
    arguments: [uri, rule],
  });
  const document = await vscode.workspace.openTextDocument({ content: text, language: "plaintext" });
  await vscode.window.showTextDocument(document, { preview: true, viewColumn: vscode.ViewColumn.Beside });
}

exports.activate = async (context) => {
  const settings = vscode.workspace.getConfiguration("piecewise");
  const run = { command: settings.get("server"), args: ["lsp"] };
  client = new LanguageClient(
    "piecewise",
    "Piecewise rules",
    { run, debug: run },
    {
      documentSelector: [{ language: "pwr" }],
      initializationOptions: { graph: settings.get("graph"), debounce: settings.get("debounce") },
      synchronize: {
        configurationSection: "piecewise",
        fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{pwr,pwg}"),
      },
      middleware: {
        executeCommand: (command, args, next) =>
          command === "piecewise.explain" ? explain(...args) : next(command, args),
      },
    },
  );
  await client.start();
  context.subscriptions.push(client);
};

exports.deactivate = () => client?.stop();
