import type { AddressRecord, Answer } from "./merge-answers.ts";
import { mergeAnswers } from "./merge-answers.ts";
import type { ResolveOutcome } from "./resolver.ts";

/**
 * Waits for all questions, at most `timeoutMs`; what was answered by then counts. On timeout and abort `cancel` ends what is
 * still open. A question that fails says why by its error's code. Rejects with the signal's reason.
 */
export function gatherAnswers(
  questions: readonly Promise<readonly AddressRecord[]>[],
  timeoutMs: number,
  signal: AbortSignal,
  cancel: () => void,
): Promise<ResolveOutcome> {
  const answers: Answer[] = questions.map(() => ({ nativeCode: "ETIMEOUT" }));
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    const onTimeout = (): void => {
      settle();
      resolve(mergeAnswers(answers));
      cancel();
    };
    const onAbort = (): void => {
      settle();
      reject(signal.reason as Error);
      cancel();
    };
    const timer = setTimeout(onTimeout, timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    const watched = questions.map(async (question, index) => {
      answers[index] = await answerOf(question);
    });
    void Promise.all(watched).then(() => {
      settle();
      resolve(mergeAnswers(answers));
    });
  });
}

async function answerOf(question: Promise<readonly AddressRecord[]>): Promise<Answer> {
  try {
    return { records: await question };
  } catch (error) {
    return { nativeCode: codeOf(error) };
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "EUNKNOWN";
}
