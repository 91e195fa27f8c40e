// Strings sort as the collations of Unicode say: compared with the ICU that Node brings.

import { describe, test } from "node:test";
import assert from "node:assert/strict";
import { collection, serveTests } from "./fixture.js";

serveTests("collation");

/** A locale of MongoDB and the same in the notation of Intl. */
const LOCALES = [
  ["en", "en"], ["de", "de"], ["de@collation=phonebook", "de-u-co-phonebk"], ["sv", "sv"], ["da", "da"], ["nb", "nb"],
  ["fi", "fi"], ["et", "et"], ["lt", "lt"], ["pl", "pl"], ["cs", "cs"], ["hu", "hu"], ["ro", "ro"], ["tr", "tr"],
  ["es", "es"], ["es@collation=traditional", "es-u-co-trad"], ["fr", "fr"], ["fr_CA", "fr-CA"], ["pt", "pt"],
  ["vi", "vi"], ["ru", "ru"], ["uk", "uk"], ["el", "el"], ["he", "he"], ["ar", "ar"], ["hi", "hi"], ["ja", "ja"],
  ["ko", "ko"], ["zh", "zh"], ["zh_Hant", "zh-Hant"], ["zh@collation=stroke", "zh-u-co-stroke"],
];

const LETTERS = [
  ..."aAbcdhilnostuzZ", ..."áàâäåãæçčďéèêëíîïıłñóòôöøõőœřśšßţťúùûüůűýžźż", ..."ÄÅÉÖØŠŽ", "ch", "ll", "dž", "lj", "ng",
  ..."абвгґдеєжзиіїйяё", ..."αβγλσςωά", ..."אבגד", ..."ابتث", ..."अआइकख", ..."あいアイかが", ..."가나다", ..."一二三中文阿八北京",
  ..." -_.,'!1290",
];

/** Numbers from a seed: the same words in every run. */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function randomWords(count) {
  const next = numbers(17);
  const word = () => Array.from({ length: 1 + next(4) }, () => LETTERS[next(LETTERS.length)]).join("");
  return [...new Set(Array.from({ length: count }, word))];
}

/** Words in groups of equal ones, as strings, so that two orders can be compared whatever becomes of ties. */
function groups(words, compare) {
  const grouped = [];
  for (const word of words) {
    const last = grouped.at(-1);
    if (last && compare(last[0], word) === 0) last.push(word);
    else grouped.push([word]);
  }
  return grouped.map((group) => group.sort().join(" | "));
}

describe("the order of each locale is that of ICU", () => {
  for (const [locale, tag] of LOCALES) {
    for (const [options, intl] of [
      [{ strength: 3 }, { sensitivity: "variant" }],
      [{ strength: 1 }, { sensitivity: "base" }],
      [{ strength: 3, numericOrdering: true, caseFirst: "upper" }, { sensitivity: "variant", numeric: true, caseFirst: "upper" }],
    ]) {
      test(`${locale} ${JSON.stringify(options)}`, async () => {
        const words = randomWords(600);
        await collection.insertMany(words.map((word) => ({ word })));
        const { compare } = new Intl.Collator(tag, intl);
        const expected = groups(words.toSorted(compare), compare);
        const collation = { locale, ...options };
        const sorted = async () => (await collection.find().collation(collation).sort({ word: 1 }).toArray()).map(({ word }) => word);
        assert.deepEqual(groups(await sorted(), compare), expected, "sorted in memory");
        await collection.createIndex({ word: 1 }, { collation });
        assert.deepEqual(groups(await sorted(), compare), expected, "sorted along an index");
        const group = words.filter((word) => compare(word, words[0]) === 0);
        assert.equal(await collection.countDocuments({ word: words[0] }, { collation }), group.length);
      });
    }
  }
});
