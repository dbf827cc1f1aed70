export interface Block {
  /** The heading that it stands below. */
  heading: string;
  language: string;
  text: string;
}

/** The blocks of code of a Markdown text, in order. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let heading = '';
  // A block is matched as a whole, so that no comment in it is taken for a heading.
  for (const [, title, language, text] of markdown.matchAll(/^#+ ([^\n]+)$|^```(\w+)\n(.*?)^```$/gms)) {
    heading = title ?? heading;
    if (language && text) blocks.push({ heading, language, text });
  }
  return blocks;
}
