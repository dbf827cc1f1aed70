/** The two assets of a job with a record step and a dataset step; the second is made from the first. */
export interface AssetPair {
  record: string;
  dataset: string;
}

const assetPair = (name: string): AssetPair => ({ record: `${name}_record`, dataset: `${name}_dataset` });

export const chatPairAssets = assetPair('chat_pair');
export const operationAssets = (type: string): AssetPair => assetPair(type);
