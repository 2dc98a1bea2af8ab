// Starts `mlc lsp` for the files of both languages.
"use strict";
const vscode = require("vscode");
const {LanguageClient} = require("vscode-languageclient/node");

let client;

exports.activate = () => {
    const command = vscode.workspace.getConfiguration("mlc").get("command");
    client = new LanguageClient("mlc", "mlc", {command, args: ["lsp"]},
        {documentSelector: [{language: "mlc"}, {language: "mlir"}]});
    return client.start();
};

exports.deactivate = () => client && client.stop();
