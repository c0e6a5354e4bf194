/** Undo and redo of one's answers, without end: the last of this tab first, then what the store has. */
import {say, uuid} from "./dom.js";

/** Make the stacks of a tab. `send` posts decisions, `earlier(before)` finds older answers, `reopened` hears of those. */
export function undoStack(send, earlier, reopened) {
  const steps = [], undone = [];
  let before = null;
  return {
    /** Note an answer: {client | batch, words, redo(), undone()}; words follow "Undone: ". */
    did(step) {
      steps.push(step);
      undone.length = 0;
    },
    async undo() {
      let step = steps.pop();
      if (!step) {
        step = await earlier(before).catch(() => null);
        if (!step) return say("Nothing left to undo.");
        before = step.seq;
        step.undone = () => reopened(step);
      }
      send({decisions: [{client: uuid(), verdict: "undone", undoes: step.client ?? step.batch}]});
      if (step.redo) undone.push(step);
      say(`Undone: ${step.words}`);
      step.undone?.();
    },
    redo() {
      const step = undone.pop();
      if (!step) return say("Nothing left to redo.");
      const rest = undone.splice(0); // redoing notes the answer again, which would clear them
      step.redo();
      undone.push(...rest);
    },
  };
}
