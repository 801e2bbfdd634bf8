// What an engine cannot do: a code for the page, a sentence for people.
export class Refused extends Error {
  constructor(code, sentence) {
    super(sentence);
    this.code = code;
  }
}
