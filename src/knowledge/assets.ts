/** The two assets of a job with a record step and a dataset step; the second is made from the first. */
export interface AssetPair {
  record: string;
  dataset: string;
}

/** Of an operation: those of its type. */
export const assetsOf = (name: string): AssetPair => ({
  record: `${name}_record`,
  dataset: `${name}_dataset`,
});

export const chatPairAssets = assetsOf('chat_pair');
