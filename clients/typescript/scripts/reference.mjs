// Writes docs/reference/typescript-sdk.md from the exported types and their comments.
import { writeFileSync } from 'node:fs';
import ts from 'typescript';

const ENTRY = new URL('../src/index.ts', import.meta.url).pathname;
const OUTPUT = new URL('../../../docs/reference/typescript-sdk.md', import.meta.url);
/** Generated types, whose reference is the API explorer. */
const GENERATED = new Set(['components', 'operations', 'paths']);
const INTRODUCTION = `# TypeScript SDK

Look up the classes, functions and types of \`@perennial/client\`.
[Use the TypeScript SDK](../how-to/use-the-typescript-sdk.md) shows how they work together. The paths, fields and records of
\`get\`, \`post\`, \`put\`, \`delete\` and \`list\` are those of the API explorer at \`/docs/\`. This page is generated from the types.
`;

const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, strict: true, types: [] };
const program = ts.createProgram([ENTRY], options);
const checker = program.getTypeChecker();

/** Returns the comment of a symbol as Markdown. */
function comment(symbol) {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  return text.replace(/\{@link ([^}]*?)\s*\}/g, '`$1`').trim();
}

/** Returns source code on one line, without comments, private names and bodies. */
function sourceCode(node) {
  const printer = ts.createPrinter({ removeComments: true });
  return printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile()).replace(/\s+/g, ' ').trim();
}

/** Returns the declaration of a method, an accessor or a field. */
function signature(member) {
  if (ts.isPropertyDeclaration(member) || ts.isPropertySignature(member)) {
    const type = member.type ? sourceCode(member.type) : JSON.stringify(member.initializer.text);
    return `${member.name.getText()}${member.questionToken ? '?' : ''}: ${type}`;
  }
  const name = ts.isConstructorDeclaration(member) ? `new ${member.parent.name.text}` : member.name.getText();
  if (ts.isGetAccessor(member)) return `${name}: ${sourceCode(member.type)}`;
  const typeParameters = member.typeParameters?.map(sourceCode).join(', ');
  const parameters = member.parameters.map((parameter) => {
    const { name: binding, dotDotDotToken, questionToken, type, initializer } = parameter;
    const label = ts.isIdentifier(binding) ? binding.text : 'options';
    const isOptional = questionToken || initializer;
    return `${dotDotDotToken ? '...' : ''}${label}${isOptional ? '?' : ''}: ${type ? sourceCode(type) : checker.typeToString(checker.getTypeAtLocation(parameter))}`;
  });
  const optional = member.questionToken ? '?' : '';
  const returns = member.type ? `: ${sourceCode(member.type)}` : '';
  return `${name}${optional}${typeParameters ? `<${typeParameters}>` : ''}(${parameters.join(', ')})${returns}`;
}

const oneLine = (text) => text.replace(/\s*\n\s*/g, ' ');

const codeBlock = (text) => `\`\`\`typescript\n${text}\n\`\`\`\n`;

/** Returns the members of a class or an interface, each with its comment. */
function members(declaration) {
  const isPublic = (member) =>
    !(member.name && ts.isPrivateIdentifier(member.name)) &&
    !(member.name?.getText() === 'name' && member.initializer) &&
    !(ts.isConstructorDeclaration(member) && /Error$|^Session$/.test(declaration.name.text));
  return declaration.members.filter(isPublic).map((member) => {
    const symbol = member.symbol ?? checker.getSymbolAtLocation(member.name);
    const text = oneLine(comment(symbol));
    return `- \`${signature(member)}\`${text ? `\n\n  ${text}` : ''}\n`;
  });
}

/** Returns the text of an exported symbol and the kind of its declaration. */
function section(symbol) {
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const declaration = target.declarations[0];
  const kind = ts.SyntaxKind[declaration.kind];
  if (ts.isTypeAliasDeclaration(declaration)) {
    return { kind, text: `- \`${symbol.name}\`: ${oneLine(comment(target))}` };
  }
  const parts = [`### ${symbol.name}\n`];
  if (comment(target)) parts.push(`${comment(target)}\n`);
  if (ts.isFunctionDeclaration(declaration)) parts.push(codeBlock(signature(declaration)));
  else parts.push(...members(declaration));
  return { kind, text: parts.join('\n') };
}

const KINDS = [
  ['Classes', 'ClassDeclaration'],
  ['Functions', 'FunctionDeclaration'],
  ['Options and objects', 'InterfaceDeclaration'],
  ['Types', 'TypeAliasDeclaration'],
];
const entry = checker.getSymbolAtLocation(program.getSourceFile(ENTRY));
const sections = checker
  .getExportsOfModule(entry)
  .filter(({ name }) => !GENERATED.has(name))
  .map(section);
const groups = KINDS.map(([title, kind]) => {
  const texts = sections.filter((found) => found.kind === kind).map(({ text }) => text);
  return `## ${title}\n\n${texts.join('\n')}`;
});
writeFileSync(OUTPUT, `${[INTRODUCTION, ...groups].join('\n').trimEnd()}\n`);
